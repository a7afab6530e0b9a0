"""Launchers of the commands, and what only a checkout needs: studies and benchmarks."""
