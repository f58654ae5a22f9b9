"""Tests of this provider; those in ``generated`` belong to capsmith."""
