"""Text as lines: files of it, and the form that a corpus gives it."""
