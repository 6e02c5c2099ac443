"""ns-3 program: a data centre's fabric."""
