"""Packet simulation of an access link."""
