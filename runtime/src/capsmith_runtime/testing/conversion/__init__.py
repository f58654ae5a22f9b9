"""Objects for tests of conversion between API versions."""
