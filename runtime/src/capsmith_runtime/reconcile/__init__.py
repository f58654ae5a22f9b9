"""Objects, caches and results that the controllers of all provider types share."""
