"""Recurrent sequence-to-sequence models whose attention does not grow with the source."""
