"""The layers of a model, except its attention."""
