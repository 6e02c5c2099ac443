"""System identification: from measured signals to state-space models."""
