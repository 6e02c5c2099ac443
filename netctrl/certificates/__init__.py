"""Certificates of queue laws that people run: margins of the sampled loop, proved over a box, and gains that hold."""
