"""Model predictive control: quadratic programs, their solvers, and laws that need none."""
