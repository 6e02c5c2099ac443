"""The simulators: scenarios run in numba kernels, alone or in batches on all cores."""
