"""What TensorFlow Serving says over REST: requests, answers, status and metadata."""
