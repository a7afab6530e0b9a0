"""TensorFlow Serving's REST protocol: requests, answers, status and metadata."""
