"""Parse and validate contract data. Error messages name the file and the key.

The data ships with capsmith, so an error is a bug in capsmith or in a local edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from capsmith.errors import UnreadableInput

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound="BaseModel")

# libyaml's loader is about ten times as fast; both build the same data.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_IDS = ("id", "hook", "name")
"""Keys that identify the entries of a list in messages."""


def make_error(file: str, message: str) -> UnreadableInput:
    """Create, but do not raise, the exception for invalid contract data.

    ``file`` is the data file's name.  Every such exception has the same hint.
    """
    return UnreadableInput(
        "contract-data", message, file=file, hint="Reinstall capsmith, or undo the edit."
    )


def parse(text: str, file: str) -> Any:
    """Parse a YAML string into plain data.

    ``file`` is the name to use in error messages.  Raises UnreadableInput for invalid YAML.
    """
    try:
        return yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise make_error(file, f"invalid YAML: {error}") from error


def load(file: Traversable) -> Any:
    """Read a YAML file into plain data.

    Raises UnreadableInput if the file cannot be read or is not valid YAML.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise make_error(str(file), f"cannot be read: {error.strerror}") from error
    return parse(text, str(file))


def validate(model: type[M], data: Any, file: str) -> M:
    """Validate ``data`` against ``model`` and return the model instance.

    ``file`` is the name to use in error messages.  Raises UnreadableInput, whose message lists all
    errors.
    """
    from pydantic import ValidationError

    if not isinstance(data, Mapping):
        raise make_error(file, "the file is not a mapping")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise make_error(file, "; ".join(describe_errors(error, data))) from None


def describe_errors(error: ValidationError, data: Any) -> Iterator[str]:
    """Yield a line for each validation error, with the path to the key and the problem."""
    unknown: dict[str, list[str]] = {}
    for each in error.errors(include_url=False):
        path, kind = each["loc"], each["type"]
        if kind in ("extra_forbidden", "unexpected_keyword_argument"):
            unknown.setdefault(_path(path[:-1], data), []).append(str(path[-1]))
        elif kind in ("missing", "missing_argument"):
            yield f"{_path(path, data)} is missing"
        else:
            yield f"{_path(path, data)} is {each['input']!r}: {each['msg']}"
    for parent, names in unknown.items():
        yield f"{parent + ' has ' if parent else ''}unknown keys {', '.join(sorted(names))}"


def _path(steps: Sequence[str | int], data: Any) -> str:
    """Return ``steps`` as a string; list entries appear by their id if they have one."""
    parts: list[str] = []
    for step in steps:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):  # a missing key, or a name of pydantic's
            data = None
        if isinstance(step, str):
            parts.append(step)
        elif isinstance(data, Mapping):
            parts.append(next((str(data[key]) for key in _IDS if key in data), str(step + 1)))
    return ".".join(parts)
