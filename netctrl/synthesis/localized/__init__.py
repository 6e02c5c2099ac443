"""Localized synthesis: columns of finite length in a region about each link."""
