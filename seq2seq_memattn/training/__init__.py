"""Training: the loop, its updates and its devices."""
