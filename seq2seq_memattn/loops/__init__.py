"""How sequences run: the loop over steps on each backend, and what it is made of."""
