"""Training on several devices or in several processes."""
