"""What things are: frozen records without algorithms."""
