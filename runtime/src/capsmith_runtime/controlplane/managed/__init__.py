"""Managed control planes, which have no Machines."""
