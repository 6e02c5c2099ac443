"""Data-centre fabric: hosts, switches, flows by size."""
