"""From a network to gains with a certificate: one module a paper, each a composition of techniques."""
