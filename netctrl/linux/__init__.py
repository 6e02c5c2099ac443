"""What runs on a router or a sender: plans of tc that are applied and taken back, the control agent, namespaces."""
