"""What a description means together: rules across keys that the model alone cannot check."""
