"""Myopic architectures: a link's own backlog, or its neighbours'."""
