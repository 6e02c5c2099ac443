"""Senders and receivers of the packet engine."""
