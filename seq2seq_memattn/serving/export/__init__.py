"""Exports models as SavedModels that map strings to strings."""
