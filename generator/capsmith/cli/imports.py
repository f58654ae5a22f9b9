"""Import slow modules as cheaply as possible."""

from __future__ import annotations

import os
from importlib import import_module


def import_pydantic() -> None:
    """Import pydantic; call this where few calls are on the stack.

    CPython keeps frames in chunks of 16 KiB, and maps and unmaps memory at every call across the
    end of one.  Importing pydantic makes thousands of calls from one depth: below a chain of other
    imports that depth was such an end, and the import took eight times as long.
    """
    # Plugins would be looked for in the metadata of every distribution that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    import_module("pydantic.main")
