"""Training with TensorFlow: the loop, its checkpoints, its devices."""
