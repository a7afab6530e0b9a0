"""Updates of the weights, on each backend and with parameter servers."""
