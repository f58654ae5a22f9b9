"""Objects of one API version in the shape of another."""
