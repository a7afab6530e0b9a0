"""Launchers of the commands, and the studies and benchmarks, which only a checkout has."""
