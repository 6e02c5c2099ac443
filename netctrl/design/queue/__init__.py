"""Design of queues that people run: gains of PIE, PI2, DualPI2 and thresholds of RED and WRED for a box."""
