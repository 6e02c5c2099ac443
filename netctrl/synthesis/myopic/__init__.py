"""Myopic architectures: control from a link's own backlog, or its neighbours'."""
