"""The commands: `memattn NAME` is NAME.py."""
