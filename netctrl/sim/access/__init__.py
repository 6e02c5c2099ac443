"""Packets at an access link."""
