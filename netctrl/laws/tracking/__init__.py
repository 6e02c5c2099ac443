"""Output tracking: the tracking law, its governor, schedule and online adaptation."""
