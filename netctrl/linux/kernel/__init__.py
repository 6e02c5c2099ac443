"""Interfaces to the kernel: netlink, qdiscs, BPF."""
