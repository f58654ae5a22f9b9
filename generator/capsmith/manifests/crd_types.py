"""The types of the parts of CRDs, as the API server decodes them (apiextensions.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from capsmith.yamldoc.compose import Path

Problem = tuple[Path, str]
"""Path to a part of the CRD, and the type that is expected there."""
_Check = Callable[[Any, Path], Iterator[Problem]]


def find_wrong_types(crd: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the parts of a CRD that the API server cannot decode because of their types.

    If there are none, callers can rely on the types.  Null counts as absent, as for the API server.
    Unknown keys are ignored.
    """
    yield from _CRD(crd, ())


def _scalar(what: str, *types: type) -> _Check:
    def check(value: Any, path: Path) -> Iterator[Problem]:
        # In Python True is an int.
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            yield path, what

    return check


def _list_of(item: _Check) -> _Check:
    def check(value: Any, path: Path) -> Iterator[Problem]:
        if not isinstance(value, list):
            yield path, "a list"
            return
        for index, each in enumerate(value):
            yield from item(each, (*path, index))

    return check


def _map_of(value_check: _Check) -> _Check:
    def check(value: Any, path: Path) -> Iterator[Problem]:
        if not isinstance(value, Mapping):
            yield path, "a mapping"
            return
        for key, each in value.items():
            if isinstance(key, str):
                yield from value_check(each, (*path, key))
            else:
                yield path, f"a string instead of the key {key!r}"

    return check


def _object(**keys: _Check) -> _Check:
    def check(value: Any, path: Path) -> Iterator[Problem]:
        yield from _map_of(_anything)(value, path)
        if not isinstance(value, Mapping):
            return
        for key, check_key in keys.items():
            found = value.get(key.replace("__", "-"))
            if found is not None:
                yield from check_key(found, (*path, key.replace("__", "-")))

    return check


def _anything(value: Any, path: Path) -> Iterator[Problem]:
    return iter(())


def _schema(value: Any, path: Path) -> Iterator[Problem]:
    # A function of its own, as schemas contain schemas.
    yield from _SCHEMA(value, path)


def _schema_or_flag(value: Any, path: Path) -> Iterator[Problem]:
    if not isinstance(value, bool):
        yield from _SCHEMA(value, path)


_TEXT = _scalar("a string", str)
_FLAG = _scalar("true or false", bool)
_COUNT = _scalar("an integer", int)
_NUMBER = _scalar("a number", int, float)
_RULE = _object(rule=_TEXT, message=_TEXT, messageExpression=_TEXT, reason=_TEXT, fieldPath=_TEXT)
_SCHEMA = _object(
    **dict.fromkeys(("type", "format", "pattern", "title", "description"), _TEXT),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems"), _COUNT),
    **dict.fromkeys(("maxProperties", "minProperties"), _COUNT),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), _FLAG),
    **dict.fromkeys(("allOf", "oneOf", "anyOf"), _list_of(_schema)),
    enum=_list_of(_anything),
    required=_list_of(_TEXT),
    properties=_map_of(_schema),
    additionalProperties=_schema_or_flag,
    items=_schema,
    x__kubernetes__preserve__unknown__fields=_FLAG,
    x__kubernetes__int__or__string=_FLAG,
    x__kubernetes__embedded__resource=_FLAG,
    x__kubernetes__list__type=_TEXT,
    x__kubernetes__map__type=_TEXT,
    x__kubernetes__list__map__keys=_list_of(_TEXT),
    x__kubernetes__validations=_list_of(_RULE),
    **{"not": _schema},
)
_COLUMN = _object(
    **dict.fromkeys(("name", "type", "format", "description", "jsonPath"), _TEXT),
    priority=_COUNT,
)
_SCALE = dict.fromkeys(("specReplicasPath", "statusReplicasPath", "labelSelectorPath"), _TEXT)
_VERSION = _object(
    name=_TEXT,
    served=_FLAG,
    storage=_FLAG,
    schema=_object(openAPIV3Schema=_schema),
    subresources=_object(status=_map_of(_anything), scale=_object(**_SCALE)),
    additionalPrinterColumns=_list_of(_COLUMN),
    selectableFields=_list_of(_object(jsonPath=_TEXT)),
)
_NAMES = _object(
    **dict.fromkeys(("plural", "singular", "kind", "listKind"), _TEXT),
    **dict.fromkeys(("shortNames", "categories"), _list_of(_TEXT)),
)
_CRD = _object(
    metadata=_object(name=_TEXT, labels=_map_of(_TEXT), annotations=_map_of(_TEXT)),
    spec=_object(
        group=_TEXT,
        scope=_TEXT,
        names=_NAMES,
        versions=_list_of(_VERSION),
        preserveUnknownFields=_FLAG,
        conversion=_object(strategy=_TEXT),
    ),
)
