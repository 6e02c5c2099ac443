"""Control laws as single steps, shared by the simulators, ns-3 and the programs on routers."""
