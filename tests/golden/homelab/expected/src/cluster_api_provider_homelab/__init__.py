"""Homelab."""
