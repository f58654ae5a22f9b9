"""Record of the conditions that an author's code shows, to remove those that it no longer returns.

Conditions of other writers must stay (ST-10), and nothing in a condition names its writer.  So an
annotation lists the author's types; it is written before the conditions, which makes it complete
after a crash between the two.
"""

from __future__ import annotations

from collections.abc import Set

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object


def annotation(group: str) -> str:
    """Return the annotation that lists the types."""
    return f"{group}/conditions"


def recorded(obj: Object, group: str) -> frozenset[str]:
    """Return the types of the object's conditions that the author's code wrote."""
    text = metadata.annotations(obj).get(annotation(group), "")
    return frozenset(name for name in text.split(",") if name)


def with_record(obj: Object, group: str, types: Set[str]) -> dict[str, str]:
    """Return the annotations of the object with these types."""
    others = {k: v for k, v in metadata.annotations(obj).items() if k != annotation(group)}
    return {**others, annotation(group): ",".join(sorted(types))} if types else others
