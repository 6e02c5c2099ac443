"""CONNET: output tracking of an access link's delay or jitter."""
