"""Model predictive control: quadratic programs, their solvers, and explicit laws."""
