"""JSON patches applied (RFC 6902), as far as objects reach: what core does with them."""

from __future__ import annotations

import copy
from typing import Any


def patched(value: Any, operations: list[dict[str, Any]]) -> Any:
    """A copy of ``value`` with the operations done; fails where core would."""
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
