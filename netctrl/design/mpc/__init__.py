"""Model predictive control of any plant."""
