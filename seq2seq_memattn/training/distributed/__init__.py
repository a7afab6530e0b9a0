"""Several devices or processes that train together."""
