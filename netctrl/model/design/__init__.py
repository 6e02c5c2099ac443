"""Design files: the common record, and the inputs and certificate of each method."""
