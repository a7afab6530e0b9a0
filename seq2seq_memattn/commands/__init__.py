"""The commands: `memattn NAME` runs NAME.py."""
