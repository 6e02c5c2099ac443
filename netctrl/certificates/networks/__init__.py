"""Certificates of networks: several links with queue laws of their own, and flows that cross some of them."""
