"""`netctrl export ns3|tc`."""
