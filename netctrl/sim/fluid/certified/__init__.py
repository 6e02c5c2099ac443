"""Nonlinear fluid of senders in classes, one queue and the law that runs in it."""
