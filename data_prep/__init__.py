"""Launchers, for use in a checkout, of the commands that prepare data directories."""
