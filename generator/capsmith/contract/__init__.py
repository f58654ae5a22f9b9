"""The Cluster API contract as data, independent of any provider."""
