"""The HTTPS server that Cluster API and the API server call."""
