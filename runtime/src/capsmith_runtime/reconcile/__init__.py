"""Objects, caches and results shared by the controllers of all provider types."""
