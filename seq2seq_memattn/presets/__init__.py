"""Presets: configurations that `--config` takes by name; one file for each family."""
