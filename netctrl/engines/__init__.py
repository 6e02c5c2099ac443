"""What runs a scenario: the fluid, the packet engine, ns-3; and what holds them against each other."""
