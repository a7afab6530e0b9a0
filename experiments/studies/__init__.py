"""The tables and figures of the papers, and what goes beyond them: a file for each, by its name."""
