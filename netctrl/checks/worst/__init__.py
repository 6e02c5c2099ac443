"""Networks within bounds that serve a pacing law worst, found by mixed-integer programming and replayed on packets."""
