"""Configurations by name, as `--config` takes them: one file for each family."""
