"""Riccati equations and what they give: LQR, LQI, Kalman, delayed regulators."""
