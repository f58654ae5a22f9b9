"""capsmith: from one provider.yaml to a Cluster API provider in Python."""

__version__ = "0.2.0"
