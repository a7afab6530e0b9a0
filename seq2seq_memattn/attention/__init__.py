"""Attentions: what a decoder reads of the source, and how."""
