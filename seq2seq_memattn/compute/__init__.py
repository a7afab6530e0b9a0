"""The numerical basis of the layers: backend, precision, rows of arrays, padding, seeds."""
