"""ns-3 program: a network of links under rate control."""
