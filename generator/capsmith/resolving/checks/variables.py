"""Check texts of the components file, in which clusterctl replaces variables."""

from __future__ import annotations

import re
from typing import Any

from capsmith.yamldoc.quote import shown
from capsmith.yamldoc.reporter import Place

_VARIABLE = re.compile(r"\$\{|\$\$")


def check_variables(place: Place, value: Any) -> None:
    """Findings ``clusterctl-variable`` on every text of ``value``, which stands at ``place``.

    clusterctl reads ``${X}`` as a variable that has to be set, and makes one dollar of two,
    wherever they stand: in descriptions and patterns of a CRD too.
    """
    if isinstance(value, dict):
        for name, below in value.items():
            check_variables(place.at(name), below)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            check_variables(place.at(index), below)
    elif isinstance(value, str) and (found := _VARIABLE.search(value)):
        place.error(
            "clusterctl-variable",
            f"clusterctl would replace {shown(found[0] + value[found.end() :][:20])} in this text",
            "Write it without `${` and `$$`; use [$] in a regular expression.",
        )
