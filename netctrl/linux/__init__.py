"""What runs on a router or a sender: queues planned, applied and put back, and control loops on them."""
