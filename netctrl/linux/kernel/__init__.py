"""The kernel's interfaces: netlink, qdiscs, BPF."""
