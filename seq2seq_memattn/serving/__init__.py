"""An embedded server for exported SavedModels, with TensorFlow Serving's REST protocol."""
