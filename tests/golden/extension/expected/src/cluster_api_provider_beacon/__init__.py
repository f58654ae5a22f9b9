"""Beacon."""
