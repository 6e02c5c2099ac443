"""Riccati equations and their applications: LQR, LQI, Kalman filter, delayed regulators."""
