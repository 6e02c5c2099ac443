"""What every room stands on: errors, units, registries, files, and the compiler of kernels."""
