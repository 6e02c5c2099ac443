"""Links of the packet engine: queues, their laws, the wire."""
