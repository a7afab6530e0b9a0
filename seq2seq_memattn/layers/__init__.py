"""The layers that a model is made of, beside its attention."""
