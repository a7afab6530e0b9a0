"""Makes data directories from text files or, for the copy task, from random symbols."""
