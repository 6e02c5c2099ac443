"""Packets in a data-centre fabric."""
