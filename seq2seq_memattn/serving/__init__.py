"""Serving: from a trained run to a SavedModel, and from that to answers."""
