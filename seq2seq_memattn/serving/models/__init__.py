"""Exported models in the server: versions, batches of requests."""
