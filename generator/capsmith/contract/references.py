"""References from Cluster API's kinds to providers' kinds.

Loaded from ``schemas/contracts/common/references.yaml``.
"""

from __future__ import annotations

from importlib.resources.abc import Traversable

from capsmith.contract.model import ContractReference
from capsmith.contract.reading import load, make_error, validate

FILE = "references.yaml"


def load_references(reader: Traversable) -> tuple[ContractReference, ...]:
    """Load the references from the schemas folder ``reader``.

    Raises UnreadableInput for invalid data, and for a row with neither field nor owner.
    """
    from capsmith.contract.files import ReferencesFile  # builds pydantic models

    file = reader / "contracts" / "common" / FILE
    content = validate(ReferencesFile, load(file), str(file))
    for entry in content.references:
        if not entry.field and not entry.owner:
            raise make_error(str(file), f"{entry.source}, {entry.role}: neither field nor owner")
    return tuple(
        ContractReference(entry.source, entry.role, entry.field, entry.owner)
        for entry in content.references
    )
