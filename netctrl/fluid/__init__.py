"""How a network moves: fluid models of TCP, queues and AQM, their equilibria and linearisations."""
