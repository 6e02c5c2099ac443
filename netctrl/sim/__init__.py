"""The simulator: scenarios run in the fluid, in numba kernels, alone or in batches on all cores."""
