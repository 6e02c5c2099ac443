"""Export of designs as Linux configuration: tc commands, agents, marking programs."""
