"""Evaluation of queues and congestion controls by the scenario lists of RFC 7928 and RFC 9743."""
