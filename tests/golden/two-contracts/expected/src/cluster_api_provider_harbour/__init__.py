"""Harbour."""
