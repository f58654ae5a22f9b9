"""Against a real API server, without Cluster API: what capsmith calls valid is taken."""
