"""The loop over the steps of sequences on each backend, and its parts."""
