"""`netctrl export ns3`, `tc`, `sonic` and `openconfig`."""
