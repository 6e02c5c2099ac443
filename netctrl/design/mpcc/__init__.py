"""MPCC: windows of data-centre senders."""
