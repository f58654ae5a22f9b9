"""Convert structural schemas to CEL types, as the API server does.

Objects become protocol buffer messages, because CEL has no other types with named fields.
Source: ``SchemaDeclType`` in k8s.io/apiserver/pkg/cel/common/schemas.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, struct_pb2, timestamp_pb2

_WELL_KNOWN = (struct_pb2, timestamp_pb2, duration_pb2)
_PACKAGE = "capsmith"
_KEYWORD_LIST = """
    true false null in as break const continue else for function if import let loop package
    namespace return var void while
"""
_KEYWORDS = frozenset(_KEYWORD_LIST.split())
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
# Other formats, such as uuid or email, are validated by the API server but stay strings for rules.
_STRINGS = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_SCALARS = {"boolean": "bool", "number": "double", "integer": "int"}
_FIELD = descriptor_pb2.FieldDescriptorProto
_FIELD_TYPES: Mapping[str, int] = {
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
    "bool": _FIELD.TYPE_BOOL,
    "double": _FIELD.TYPE_DOUBLE,
    "int": _FIELD.TYPE_INT64,
}
_MESSAGES = {
    "timestamp": ".google.protobuf.Timestamp",
    "duration": ".google.protobuf.Duration",
    "dyn": ".google.protobuf.Value",
    "list": ".google.protobuf.ListValue",
    "map": ".google.protobuf.Struct",
}

CelType = dict[str, Any]
"""A type in the form that environment configurations use."""


def escape(name: str) -> str | None:
    """Return the escaped name by which a rule selects a property, or None if no rule can."""
    # As cel.Escape in k8s.io/apiserver/pkg/cel: rules see these names, not the ones of the schema.
    if name in _KEYWORDS:
        return f"__{name}__"
    if not re.fullmatch(r"[A-Za-z_./-][A-Za-z0-9_./-]*", name):
        return None
    return re.sub(r"__|[./-]", lambda match: _ESCAPES[match[0]], name)


@dataclass(slots=True)
class Declarations:
    """The CEL types of one schema.

    ``fields`` lists the selectable names of each message.
    """

    fields: dict[str, list[str]] = field(default_factory=dict)
    has_parsed_texts: bool = False
    """Whether rules read some strings as times, durations or bytes."""
    _file: descriptor_pb2.FileDescriptorProto = field(
        default_factory=lambda: descriptor_pb2.FileDescriptorProto(
            name="capsmith.proto",
            package=_PACKAGE,
            syntax="proto2",
            dependency=[module.DESCRIPTOR.name for module in _WELL_KNOWN],
        )
    )

    def declare(self, schema: Mapping[str, Any]) -> CelType | None:
        """Return the CEL type of a schema's values, or None if rules cannot read them."""
        # Checked first, because such a schema has no type.
        if schema.get("x-kubernetes-int-or-string"):
            return {"type_name": "dyn"}
        match schema.get("type"):
            case "array":
                item = self.declare(schema.get("items", {}))
                return item and {"type_name": "list", "params": [item]}
            case "object" if "additionalProperties" in schema:
                value = self.declare(schema["additionalProperties"])
                return value and {"type_name": "map", "params": [{"type_name": "string"}, value]}
            case "object":
                return self._object(schema)
            case "string":
                parsed = _STRINGS.get(schema.get("format", ""))
                self.has_parsed_texts |= parsed is not None
                return {"type_name": parsed or "string"}
        scalar = _SCALARS.get(schema.get("type", ""))
        return {"type_name": scalar} if scalar else None

    def pool(self) -> descriptor_pool.DescriptorPool:
        """Return a new pool with the descriptors of all declared messages."""
        pool = descriptor_pool.DescriptorPool()
        for module in _WELL_KNOWN:
            pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(self._file.SerializeToString())
        return pool

    def _object(self, schema: Mapping[str, Any]) -> CelType:
        properties: dict[str, CelType] = {}
        for name, below in schema.get("properties", {}).items():
            # A property that no rule can read is left out, so that a rule which selects it does not
            # compile.
            if (escaped := escape(name)) and (declared := self.declare(below)):
                properties[escaped] = declared
                if name in _KEYWORDS:
                    # The API server takes the name itself too, where CEL's grammar does.
                    properties[name] = declared
        name = f"Object{len(self.fields) + 1}"
        message = self._file.message_type.add(name=name)
        # Names such as ip_address and ipAddress have the same name in JSON, which is not used.
        message.options.deprecated_legacy_json_field_conflicts = True
        for number, (escaped, declared) in enumerate(properties.items(), start=1):
            _add_field(message, escaped, number, declared)
        self.fields[f"{_PACKAGE}.{name}"] = list(properties)
        return {"type_name": f"{_PACKAGE}.{name}"}


def _add_field(
    message: descriptor_pb2.DescriptorProto, name: str, number: int, declared: CelType
) -> None:
    added = message.field.add(
        name=name,
        # 19000 to 19999 are reserved by protocol buffers.
        number=number if number < 19_000 else number + 1_000,
        label=_FIELD.LABEL_OPTIONAL,
    )
    kind = declared["type_name"]
    # A map field is a repeated message named after it, with the option `map_entry`: protocol
    # buffers prescribe the name.  Two fields can claim the same one, as `a_b` and `aB` do; the
    # second becomes a Struct, of which less is checked.
    entry = f"{''.join(map(_capitalized, name.split('_')))}Entry"
    if kind == "list":
        added.label = _FIELD.LABEL_REPEATED
        _set_type(added, declared["params"][0]["type_name"])
    elif kind == "map" and all(nested.name != entry for nested in message.nested_type):
        added.label = _FIELD.LABEL_REPEATED
        added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{message.name}.{entry}"
        pair = message.nested_type.add(name=entry)
        pair.options.map_entry = True
        for number, (part, param) in enumerate(
            zip(("key", "value"), declared["params"], strict=True), start=1
        ):
            half = pair.field.add(name=part, number=number, label=_FIELD.LABEL_OPTIONAL)
            _set_type(half, param["type_name"])
    else:
        _set_type(added, kind)


def _set_type(added: descriptor_pb2.FieldDescriptorProto, name: str) -> None:
    """Set the type of a field.

    A list or map nested in another has items of any type: protocol buffers cannot express it, so
    less is checked.
    """
    if name in _FIELD_TYPES:
        added.type = _FIELD_TYPES[name]  # type: ignore[assignment] # an enum in the stubs only
    else:
        added.type, added.type_name = _FIELD.TYPE_MESSAGE, _MESSAGES.get(name, f".{name}")


def _capitalized(word: str) -> str:
    return word[:1].upper() + word[1:]
