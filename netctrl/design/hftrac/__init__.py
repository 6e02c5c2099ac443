"""HFTraC: control of the rates of a network's links."""
