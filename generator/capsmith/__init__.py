"""capsmith generates a Cluster API provider in Python from one provider.yaml."""

__version__ = "0.2.0"
