"""Tests of this provider."""
