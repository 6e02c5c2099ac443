"""Test networks of network namespaces."""
