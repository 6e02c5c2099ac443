"""Window laws of data-centre senders."""
