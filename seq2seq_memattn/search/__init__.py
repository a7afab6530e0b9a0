"""Search: finds or samples targets of a source with a model."""
