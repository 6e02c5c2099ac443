"""Arithmetic of targets: how Linux and switches compute a queue law in integers, with the gains in effect."""
