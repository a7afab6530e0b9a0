"""SavedModels of a run, string to string."""
