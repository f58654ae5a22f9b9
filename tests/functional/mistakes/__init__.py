"""Mistakes that an author of a provider could make, one edit of a generated repository each.

``test_kits.py`` plants them and expects the conformance kit to fail; ``scenarios.yaml`` names for
each scenario a mistake that fails it, as runs of the whole kit have shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.functional.mistakes import (
    addons,
    control_planes,
    infrastructure,
    manager,
    pools,
    resources,
    sessions,
)
from tests.functional.mistakes.base import Kit

KITS: Final[Mapping[str, Kit]] = {
    **infrastructure.KITS,
    **pools.KITS,
    **control_planes.KITS,
    **resources.KITS,
    **manager.KITS,
    **sessions.KITS,
    **addons.KITS,
}
