"""Laws at work: one evaluation, which the simulator and what runs on a router share."""
