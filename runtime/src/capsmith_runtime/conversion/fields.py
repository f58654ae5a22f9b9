"""The author's fields of a kind, which can differ between an API version and the hub.

The hub is the storage version. Fields with the same name and type are copied, and the author's
functions set the others. An annotation keeps the values that have no place in the other version
(CRD-15).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from typing import Any, Final

from capsmith_runtime.api.serialization import DecodingError, decode, encode
from capsmith_runtime.conversion.values import Data, Path, get_value, set_value
from capsmith_runtime.kube.log import describe_error

SPEC: Final[Path] = ("spec",)
TEMPLATE_SPEC: Final[Path] = ("spec", "template", "spec")
STATUS: Final[Path] = ("status",)


Report = Callable[[Exception], None]
"""Function that is called with the error if a conversion has to continue without some values."""


class AuthorFunctionError(Exception):
    """Raised if an author function failed; the message names the function and the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFields:
    """The author's fields of spec or status, in a version and in the hub."""

    path: Path
    spoke: type[Any] | None = None
    """Dataclass of all author fields in the version, or None if there are none."""
    hub: type[Any] | None = None
    spoke_keys: frozenset[str] = frozenset()
    """Names of the version's fields that have no hub field with the same name and type."""
    hub_keys: frozenset[str] = frozenset()
    """Names of the hub's fields that have no version field with the same name and type."""
    to_hub: Callable[[Any], Any] | None = None
    """Function that computes the hub's fields from the version's, or None if there are none."""
    from_hub: Callable[[Any], Any] | None = None

    def convert(self, data: Data, *, to_hub: bool, report: Report | None = None) -> None:
        """Convert this part of ``data`` in place, to the hub or from it.

        If the author's function fails, its fields are left out and ``report`` is called.  Without
        ``report``, raises AuthorFunctionError.
        """
        source = get_value(data, self.path)
        if not isinstance(source, dict):
            return
        function = self.to_hub if to_hub else self.from_hub
        typed = self.spoke if to_hub else self.hub
        old, new = self.spoke_keys, self.hub_keys
        if not to_hub:
            old, new = new, old
        # Fields that the kind does not know are kept: a newer schema may have written them.
        target = {key: value for key, value in source.items() if key not in old}
        if function is not None and typed is not None:
            try:
                filled = _filled(function, typed, source, ".".join(self.path))
            except AuthorFunctionError as error:
                if report is None:
                    raise
                report(error)
                filled = {}
            target |= {key: value for key, value in filled.items() if key in new}
        set_value(data, self.path, target)


@dataclass(frozen=True, slots=True)
class VersionFields:
    """The parts of a kind, spec and status, in which a version differs from the hub."""

    parts: tuple[PartFields, ...]

    def convert(self, data: Data, *, to_hub: bool, report: Report | None = None) -> None:
        """Convert all parts of ``data`` in place, each with :meth:`PartFields.convert`."""
        for part in self.parts:
            part.convert(data, to_hub=to_hub, report=report)


def _filled(function: Callable[[Any], Any], typed: type[Any], source: Data, path: str) -> Data:
    """Return the fields that the author's function fills; none if ``source`` has another type.

    The API server has such data only from a release with another schema.  They must stay readable.
    """
    try:
        argument = decode(typed, source, path)
    except DecodingError:
        return {}
    name = f"{function.__module__}.{function.__qualname__}"
    try:
        result = function(argument)
    except Exception as error:
        raise AuthorFunctionError(f"{name}: {describe_error(error)}") from error
    if not is_dataclass(result) or isinstance(result, type):
        raise AuthorFunctionError(f"{name} returned {type(result).__name__}")
    filled: Data = encode(result)
    return filled
