"""Design methods: from a network's parameters to gains and a certificate, one package per paper."""
