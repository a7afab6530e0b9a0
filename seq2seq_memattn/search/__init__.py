"""Search: finds or samples targets of a source with a model.

In arguments and results, `()` stands for an array that is absent: compiled functions and loops take
an empty structure, but not None.
"""
