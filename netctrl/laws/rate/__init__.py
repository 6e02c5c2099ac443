"""Rate-based senders: BBR, fixed caps, pacing laws; as records in files and as kernels."""
