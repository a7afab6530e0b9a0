"""Serving: exports trained runs as SavedModels, and answers requests with them."""
