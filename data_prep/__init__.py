"""Launchers of the commands that prepare data directories, for a checkout."""
