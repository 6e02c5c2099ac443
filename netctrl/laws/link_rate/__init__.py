"""Laws for the rates of a network's links."""
