"""Application of JSON patches (RFC 6902) to objects, as core does it."""

from __future__ import annotations

import copy
from typing import Any


def patched(value: Any, operations: list[dict[str, Any]]) -> Any:
    """Return a copy of ``value`` with the operations applied; fail where core would."""
    result = copy.deepcopy(value)
    for operation in operations:
        _, *steps = operation["path"].split("/")
        *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in steps]
        holder = result
        for step in parents:
            holder = holder[step]
        assert (last in holder) is (operation["op"] != "add")
        if operation["op"] == "remove":
            del holder[last]
        else:
            holder[last] = copy.deepcopy(operation["value"])
    return result
