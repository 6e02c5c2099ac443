"""What runs on a router or a sender: tc, planned, applied and taken back; the agent; the pacer; the testbed."""
