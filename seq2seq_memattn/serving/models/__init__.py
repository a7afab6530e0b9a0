"""Exported models in the server: their versions, and batches of requests."""
