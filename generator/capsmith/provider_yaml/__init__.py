"""The model of provider.yaml, and checks on its syntax and schemas."""
