"""Any scenario of links, queues and TCP flows, packet by packet."""
