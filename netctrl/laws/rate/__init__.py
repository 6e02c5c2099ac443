"""Senders that set a rate: BBR, fixed caps, pacing laws; as files have them, and as kernels run them."""
