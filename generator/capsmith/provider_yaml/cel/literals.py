"""Find lists and maps in CEL expressions whose values have different types.

The library accepts them, and API servers have refused them since Kubernetes v1.29. Source:
github.com/google/cel-go, cel/validator.go, and the messages of cel.expr.CheckedExpr.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

# Only what is read here. Types are kept as bytes, because they are only compared.
_MESSAGES = """
    Any value:2:bytes
    Checked types:3:*Type expr:4:Expr source:5:Source
    Type key:1:int64 value:2:bytes
    Source positions:4:*Position
    Position key:1:int64 value:2:int32
    Expr id:2:int64 select:5:Select call:6:Call list:7:List struct:8:Struct loop:9:Loop
    Select operand:1:Expr
    Call target:1:Expr function:2:string args:3:*Expr
    List elements:1:*Expr optional:2:*int32
    Struct entries:2:*Entry
    Entry key:3:Expr value:4:Expr optional:5:bool
    Loop range:2:Expr init:4:Expr condition:5:Expr step:6:Expr result:7:Expr
"""
_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bytes": _FIELD.TYPE_BYTES,
    "string": _FIELD.TYPE_STRING,
    "int64": _FIELD.TYPE_INT64,
    "int32": _FIELD.TYPE_INT32,
    "bool": _FIELD.TYPE_BOOL,
}
_DYN = b"\n\x00"
"""The type `dyn`, for which the library writes no entry."""
_PRIMITIVES = ("", "bool", "int", "uint", "double", "string", "bytes")
_OTHERS = {2: "null", 6: "list", 7: "map", 9: "object"}
_WELL_KNOWN = ("", "any", "timestamp", "duration")
_EXEMPT = "format"
"""Method of strings whose argument may have values of any types."""


class MixedLiteral(NamedTuple):
    """A value in a list or map that has another type than the first value."""

    offset: int
    """Position of the value in the expression, in code points."""
    expected: str
    found: str


def find_mixed_literals(serialized: bytes) -> list[MixedLiteral]:
    """Return the values of other types than the first in their list or map.

    ``serialized`` is a compiled expression as the library writes it. Expressions that are nested
    too deeply for the parser have none.
    """
    try:
        checked = _parse("Checked", _parse("Any", serialized).value)
    except DecodeError:
        return []
    types = {entry.key: entry.value for entry in checked.types}
    positions = {entry.key: entry.value for entry in checked.source.positions}
    return [
        MixedLiteral(positions.get(id, 0), _name(expected), _name(found))
        for id, expected, found in _find_mixed(checked.expr, types)
    ]


def _find_mixed(expr: Any, types: dict[int, bytes]) -> Iterator[tuple[int, bytes, bytes]]:
    stack = [expr]
    while stack:
        current = stack.pop()
        if current.HasField("list"):
            optional = set(current.list.optional)
            values = [(each, n in optional) for n, each in enumerate(current.list.elements)]
            yield from _compare(values, types)
        elif current.HasField("struct") and all(
            entry.HasField("key") for entry in current.struct.entries
        ):
            entries = current.struct.entries
            yield from _compare([(entry.key, False) for entry in entries], types)
            yield from _compare([(entry.value, entry.optional) for entry in entries], types)
        stack += _children(current)


def _children(expr: Any) -> Sequence[Any]:
    if expr.HasField("call"):
        # The literals in arguments of `format` are exempt at any depth, and so is its receiver.
        if expr.call.function == _EXEMPT:
            return ()
        return (expr.call.target, *expr.call.args)
    if expr.HasField("select"):
        return (expr.select.operand,)
    if expr.HasField("list"):
        return tuple(expr.list.elements)
    if expr.HasField("struct"):
        return tuple(each for entry in expr.struct.entries for each in (entry.key, entry.value))
    if expr.HasField("loop"):
        loop = expr.loop
        return (loop.range, loop.init, loop.condition, loop.step, loop.result)
    return ()


def _compare(
    values: Sequence[tuple[Any, bool]], types: dict[int, bytes]
) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the first value whose type differs from that of the first value."""
    # The type of an optional value is not unwrapped: a list of only optional values is compared,
    # and one that mixes both is left to the API server.
    if len({optional for _, optional in values}) != 1:
        return
    first = types.get(values[0][0].id, _DYN)
    for value, _ in values[1:]:
        found = types.get(value.id, _DYN)
        # A type that is `dyn` here may have a name on the API server: see `Declarations`.
        if found != first and _DYN not in first + found:
            yield value.id, first, found
            return


def _name(type_: bytes) -> str:
    """Return the name of a type, from the tag of its only field."""
    number = type_[0] >> 3
    if number == 3:
        return _PRIMITIVES[type_[1]]
    if number == 5:
        return _WELL_KNOWN[type_[1]]
    return _OTHERS.get(number, "another type")


def _parse(name: str, content: bytes) -> Any:
    return _classes()[f"capsmith.checked.{name}"].FromString(content)


@cache
def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="checked.proto", package="capsmith.checked", syntax="proto2"
    )
    for line in _MESSAGES.strip().splitlines():
        name, *fields = line.split()
        message = file.message_type.add(name=name)
        for field in fields:
            label, number, kind = field.split(":")
            added = message.field.add(name=label, number=int(number))
            added.label = _FIELD.LABEL_REPEATED if kind[0] == "*" else _FIELD.LABEL_OPTIONAL
            kind = kind.removeprefix("*")
            if kind in _SCALARS:
                added.type = _SCALARS[kind]
            else:
                added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".capsmith.checked.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClassesForFiles(["checked.proto"], pool)
