"""Launchers for a checkout of the commands that prepare data directories."""
