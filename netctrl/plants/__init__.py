"""Plant models: fluid models of TCP, queues and networks, their equilibria and linearisations."""
