"""Controller synthesis from a state-space model: Riccati equations, regulators, coordinated and localized control."""
