"""Exporters: designs and scenarios as programs that others run."""
