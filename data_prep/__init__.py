"""Scripts that prepare data directories, one per corpus."""
