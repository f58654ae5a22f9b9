"""``permissions.yaml`` of a folder of the runtime library, as plain data, -> declared permissions.

Imported only where such files are read: it builds pydantic's validators.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from capsmith.contract.reading import broken, problems
from capsmith.provider.rbac.model import DeclaredPermissions

_ADAPTER = TypeAdapter(DeclaredPermissions)


def declared_permissions(data: Any, file: str) -> DeclaredPermissions:
    """Return what one file declares.

    Raises UnreadableInput with all that is wrong.
    """
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        raise broken(file, "; ".join(problems(error, data))) from None
