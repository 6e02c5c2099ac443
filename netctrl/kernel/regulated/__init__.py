"""Flows whose packets a program inside the kernel sends in bursts, at rates that change or that a law sets."""
