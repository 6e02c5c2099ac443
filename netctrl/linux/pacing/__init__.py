"""Paced TCP sockets."""
