"""Parse ``permissions.yaml`` of a folder of the runtime library into declared permissions.

Imported only where such files are read: it builds pydantic's validators.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from capsmith.contract.reading import broken, problems
from capsmith.output.rbac.model import DeclaredPermissions

_ADAPTER = TypeAdapter(DeclaredPermissions)


def declared_permissions(data: Any, file: str) -> DeclaredPermissions:
    """Return the declarations of one file.

    Raises UnreadableInput with all errors.
    """
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        raise broken(file, "; ".join(problems(error, data))) from None
