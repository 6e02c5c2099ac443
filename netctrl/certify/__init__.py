"""Certificates of queue management as people run it: whether the loop of senders, queue and law is stable."""
