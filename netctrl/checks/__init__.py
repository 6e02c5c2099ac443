"""Nonlinear checks of certificates: in the fluid, on packets and in the kernel."""
