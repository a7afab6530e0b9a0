"""Raw files to data directories."""
