"""Homelab."""

from __future__ import annotations

# All that the infrastructure code needs; there is more when provider.yaml gains a section.
from ._generated.provider import *  # noqa: F403
