"""Search: from a model and a source to the best targets."""
