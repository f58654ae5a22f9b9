"""The Cluster API contract as data; knows no provider."""
