"""An event loop on which time passes only while nothing else happens."""

from __future__ import annotations

from capsmith_runtime.testing.clock import run as virtually

__all__ = ["virtually"]
