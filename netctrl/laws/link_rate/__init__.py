"""Laws that set the rates of a network's links."""
