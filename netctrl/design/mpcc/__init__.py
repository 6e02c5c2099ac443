"""MPCC: windows of data-centre senders from a switch's queue."""
