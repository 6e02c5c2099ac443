"""`netctrl export ns3` and `netctrl export tc`."""
