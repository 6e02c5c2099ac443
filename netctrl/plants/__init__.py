"""How a network moves: fluid models of TCP and queues, their equilibria and linearisations."""
