"""Commands of capsmith in processes of their own, from this checkout.

The environment may have another checkout installed, as where several share one, and a command
that starts in another folder would take that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
GENERATOR: Final = ROOT / "generator"


def environment(**changes: str) -> Mapping[str, str]:
    """Return the environment of this process, with this checkout's generator first in imports.

    What capsmith starts has it too; managers of providers get a path of their own.
    """
    path = os.pathsep.join(filter(None, [str(GENERATOR), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, **changes}
