"""Laws at work: one evaluation, which the simulators, ns-3 and what runs on a router share."""
