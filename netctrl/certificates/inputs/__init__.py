"""Readers of configurations that run: queueing disciplines as tc shows them, and profiles of SONiC switches."""
