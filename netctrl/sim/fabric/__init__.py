"""Packet simulation of a data-centre fabric."""
