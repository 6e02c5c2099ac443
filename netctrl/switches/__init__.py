"""Configurations of switches: WRED profiles of SONiC and of OpenConfig."""
