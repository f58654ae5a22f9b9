"""The model of provider.yaml, and checks of its syntax and schemas."""
