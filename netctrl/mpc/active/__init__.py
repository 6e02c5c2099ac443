"""Active sets from one sample to the next."""
