"""ns-3 program: TCP through queue laws."""
