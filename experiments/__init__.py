"""Launchers: the commands that train, decode, measure and reproduce."""
