"""One file per table row or curve; each holds an `EXPERIMENT`."""
