"""Makes data directories from raw files."""
