"""Trained runs: their directories, weights, translations and scores."""
