"""Queues of this machine: plan, apply, watch, restore."""
