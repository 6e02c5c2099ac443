"""HFTraC: the rates of a network's links."""
