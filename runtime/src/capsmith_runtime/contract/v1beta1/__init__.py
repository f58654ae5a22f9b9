"""The shapes of contract v1beta1."""
