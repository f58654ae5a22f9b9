"""Check printer columns: the API server can read their paths, and the fields exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from capsmith.contract.model import Contract
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import did_you_mean, shown

if TYPE_CHECKING:
    from capsmith.provider_yaml.sections import KindSpec

# What client-go's parser reads as one name: all but its terminators.
_NAME = r"(?:[^\s.,\[\]$@{}\\]|\\.)+"
_OPERAND = r"(?:[A-Za-z0-9_/-]|\\.)+"
_QUOTED = r"'(?:[^'\\\n]|\\.)+'|\"(?:[^\"\\\n]|\\.)+\""
_VALUE = rf"(?:{_QUOTED}|-?[0-9]+(?:\.[0-9]+)?|true|false)"
_FILTER = rf"\?\(@(?:\.{_OPERAND})+ ?(?:==|!=|<=?|>=?) ?{_VALUE}\)"
_INDEX = rf"\[(?:{_QUOTED}|\*|-?[0-9]+|-?[0-9]*:-?[0-9]*|{_FILTER})\]"
_PATH = re.compile(rf"(?:\.{_NAME}(?:{_INDEX})*)+")
_FIRST = re.compile(r"\.(spec|status)\.([A-Za-z0-9_-]+)")


def check_columns(described: KindSpec, contracts: list[Contract], place: Place) -> None:
    """Report ``column-path``, ``column-path-unknown`` and ``spec-repeated``."""
    seen: set[str] = set()
    for index, column in enumerate(described.printer_columns or ()):
        here = place.at("printerColumns", index)
        if column.name in seen:
            message = f"duplicate column {shown(column.name)}"
            here.warning("spec-repeated", message, "Give it another name.", "name")
        seen.add(column.name)
        if not _PATH.fullmatch(column.json_path):
            message = f"{shown(column.json_path)} is not a valid JSON path"
            hint = (
                'Write a path such as .spec.size or .status.conditions[?(@.type=="Ready")].status.'
            )
            here.error("column-path", message, hint, "jsonPath")
        elif first := _FIRST.match(column.json_path):
            _exists(first[1], first[2], described, contracts, here)


def _exists(
    part: str, name: str, described: KindSpec, contracts: list[Contract], here: Place
) -> None:
    own = described.spec if part == "spec" else described.status
    known = set(own or {})
    for contract in contracts:
        shape = contract.types[described.implements]
        known |= set(shape.spec if part == "spec" else shape.status)
    if name not in known:
        message = f"unknown field {shown(name)} in {part}: the column stays empty"
        here.warning("column-path-unknown", message, did_you_mean(name, known), "jsonPath")
