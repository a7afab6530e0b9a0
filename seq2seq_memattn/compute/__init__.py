"""What layers compute with: the backend, precision, rows of arrays, padding, seeds."""
