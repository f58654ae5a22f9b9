"""capsmith: from one provider.yaml to a Cluster API provider in Python."""

__version__ = "0.1.0"
