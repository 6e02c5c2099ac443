"""Readers and writers: fields with units, validation errors, tables, atomic files."""
