"""Find literals in CEL expressions that API servers have refused since Kubernetes v1.29.

These are lists and maps whose values have different types, and texts that cannot be formatted with
their values.  The library accepts them. Source: github.com/google/cel-go, cel/validator.go, and the
messages of cel.expr.CheckedExpr.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from capsmith.provider_yaml.cel.format_calls import find_format_faults
from capsmith.yamldoc.quote import quote

# Only what is read here. Types are kept as bytes, because they are only compared.
_MESSAGES = """
    Any value:2:bytes
    Checked types:3:*Type expr:4:Expr source:5:Source
    Type key:1:int64 value:2:bytes
    Source positions:4:*Position
    Position key:1:int64 value:2:int32
    Expr id:2:int64 const:3:Text select:5:Select call:6:Call list:7:List struct:8:Struct loop:9:Loop
    Text text:6:string
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
_OTHERS = {1: "dyn", 2: "null", 6: "list", 7: "map", 9: "object", 11: "type"}
_WELL_KNOWN = ("", "any", "timestamp", "duration")
_EXEMPT = "format"
"""Method of strings whose argument may have values of any types."""


class LiteralFault(NamedTuple):
    """A literal that API servers refuse."""

    offset: int
    """Position in the expression, in code points."""
    message: str
    hint: str


def find_literal_faults(serialized: bytes) -> Iterator[LiteralFault]:
    """Yield the literals that API servers refuse.

    ``serialized`` is a compiled expression as the library writes it. Expressions that are nested
    too deeply for the parser have none.
    """
    try:
        checked = _parse("Checked", _parse("Any", serialized).value)
    except DecodeError:
        return
    types = {entry.key: entry.value for entry in checked.types}
    positions = {entry.key: entry.value for entry in checked.source.positions}
    for id, expected, found in _find_mixed(checked.expr, types):
        kinds = f"{quote(_name(expected))} and {quote(_name(found))}"
        message = f"the literal has values of different types, {kinds}"
        hint = "Use values of one type, or write all as `dyn(value)`."
        yield LiteralFault(positions.get(id, 0), message, hint)
    for id, message in _find_format_faults(checked.expr, types):
        hint = "Write a clause for each value: %s for all types, %d for integers, %f for doubles."
        yield LiteralFault(positions.get(id, 0), message, hint)


def _find_format_faults(expr: Any, types: dict[int, bytes]) -> Iterator[tuple[int, str]]:
    stack = [expr]
    while stack:
        current = stack.pop()
        call = current.call
        stack += _children(current)
        if call.function != _EXEMPT or not call.target.HasField("const"):
            continue
        stack += call.args
        if len(call.args) == 1 and call.args[0].HasField("list"):
            values = call.args[0].list.elements
            names = [_name(types.get(value.id, _DYN)) for value in values]
            for number, message in find_format_faults(call.target.const.text, names):
                yield (call.args[0] if number is None else values[number]).id, message


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
