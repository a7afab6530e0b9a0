"""Text as lines: text files, and the form of a corpus's text."""
