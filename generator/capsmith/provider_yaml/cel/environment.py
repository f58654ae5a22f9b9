"""The environment for CEL rules: Kubernetes' functions, and CEL types for structural schemas.

A rule that calls a function added after :data:`RELEASE` is refused, as an API server of that
release would.  Schemas are converted as in the API server: objects become protocol buffer messages,
because CEL has no other types with named fields. Source: k8s.io/apiserver/pkg/cel, the packages
library, environment and common (``SchemaDeclType``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, struct_pb2, timestamp_pb2

RELEASE = "1.33"
"""Latest Kubernetes release whose functions rules may call.

A CRD must work on every API server that the provider supports, so this is not the newest release.
API servers have the same policy: a new expression may use only functions that the previous
Kubernetes release already has.
"""

_EXTENSIONS: list[dict[str, Any]] = [
    {"name": "optional"},
    {"name": "sets"},
    {"name": "two-var-comprehensions"},
]
_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE = ("int", "uint", "double", "duration")
_NUMBERS = ("int", "uint", "double")
_COMPARISONS = ("_<_", "_<=_", "_>_", "_>=_")
_TEXTUAL = ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint")
_FORMATS = """
    dns1123Label dns1123Subdomain dns1035Label qualifiedName dns1123LabelPrefix
    dns1123SubdomainPrefix dns1035LabelPrefix labelValue uri uuid byte date datetime
"""
_FUNCTIONS = """
    url(string) URL
    isURL(string) bool
    URL.getScheme() string
    URL.getHost() string
    URL.getHostname() string
    URL.getPort() string
    URL.getEscapedPath() string
    URL.getQuery() map<string,list<string>>
    string.find(string) string
    string.findAll(string) list<string>
    string.findAll(string,int) list<string>
    string.charAt(int) string
    string.format(list<dyn>) string
    string.indexOf(string) int
    string.indexOf(string,int) int
    string.lastIndexOf(string) int
    string.lastIndexOf(string,int) int
    string.lowerAscii() string
    string.replace(string,string) string
    string.replace(string,string,int) string
    string.split(string) list<string>
    string.split(string,int) list<string>
    string.substring(int) string
    string.substring(int,int) string
    string.trim() string
    string.upperAscii() string
    strings.quote(string) string
    list<string>.join() string
    list<string>.join(string) string
    list<~A>.indexOf(~A) int
    list<~A>.lastIndexOf(~A) int
    quantity(string) Quantity
    isQuantity(string) bool
    sign(Quantity) int
    Quantity.isGreaterThan(Quantity) bool
    Quantity.isLessThan(Quantity) bool
    Quantity.compareTo(Quantity) int
    Quantity.asApproximateFloat() double
    Quantity.asInteger() int
    Quantity.isInteger() bool
    Quantity.add(Quantity) Quantity
    Quantity.add(int) Quantity
    Quantity.sub(Quantity) Quantity
    Quantity.sub(int) Quantity
    ip(string) IP
    isIP(string) bool
    ip.isCanonical(string) bool
    IP.family() int
    IP.isUnspecified() bool
    IP.isLoopback() bool
    IP.isLinkLocalMulticast() bool
    IP.isLinkLocalUnicast() bool
    IP.isGlobalUnicast() bool
    string(IP) string
    cidr(string) CIDR
    isCIDR(string) bool
    CIDR.containsIP(string) bool
    CIDR.containsIP(IP) bool
    CIDR.containsCIDR(string) bool
    CIDR.containsCIDR(CIDR) bool
    CIDR.ip() IP
    CIDR.prefixLength() int
    CIDR.masked() CIDR
    string(CIDR) string
    Format.validate(string) optional_type<list<string>>
    format.named(string) optional_type<Format>
    semver(string) Semver
    semver(string,bool) Semver
    isSemver(string) bool
    isSemver(string,bool) bool
    Semver.isGreaterThan(Semver) bool
    Semver.isLessThan(Semver) bool
    Semver.compareTo(Semver) int
    Semver.major() int
    Semver.minor() int
    Semver.patch() int
"""
_DECLARATION = re.compile(r"(?:([^.\s(]+(?:<\S*>)?)\.)?([\w.]+)\(([^)]*)\) (\S+)")
_NAMESPACES = ("format", "ip", "strings")
# Types without fields: rules can only pass their values to functions.
_OPAQUE = {
    "URL": "kubernetes.URL",
    "Quantity": "kubernetes.Quantity",
    "IP": "net.IP",
    "CIDR": "net.CIDR",
    "Format": "kubernetes.NamedFormat",
    "Semver": "kubernetes.Semver",
}


def build_environment(*, is_evaluated: bool = False) -> dict[str, Any]:
    """Return an environment configuration that declares Kubernetes' functions but no variables.

    ``is_evaluated`` keeps a function that the library could not evaluate otherwise.
    """
    replaced = (*_COMPARISONS, "string", *(() if is_evaluated else ("duration",)))
    overloads: dict[str, list[dict[str, Any]]] = {}
    for number, (target, name, arguments, result) in enumerate(_declarations()):
        if name == "duration" and is_evaluated:
            continue
        overload: dict[str, Any] = {
            "id": f"capsmith_{number}",
            "args": [parse_type(argument) for argument in arguments],
            "return": parse_type(result),
        }
        if target:
            overload["target"] = parse_type(target)
        overloads.setdefault(name, []).append(overload)
    return {
        "name": "kubernetes",
        # A function has only one declaration, so CEL's own functions cannot be extended, only
        # replaced.
        "stdlib": {"exclude_functions": [{"name": name} for name in replaced]},
        "extensions": _EXTENSIONS,
        "functions": [{"name": name, "overloads": found} for name, found in overloads.items()],
    }


def parse_type(text: str) -> dict[str, Any]:
    """Convert a type name such as ``list<string>`` to the form used in configurations."""
    if text.startswith("~"):
        return {"type_name": text[1:], "is_type_param": True}
    name, _, inner = text.partition("<")
    if not inner:
        return {"type_name": _OPAQUE.get(name, name)}
    first, _, rest = inner.removesuffix(">").partition(",") if name == "map" else (inner[:-1],) * 3
    parameters = [first, rest] if name == "map" else [first]
    return {"type_name": name, "params": [parse_type(parameter) for parameter in parameters]}


def _declarations() -> Iterator[tuple[str, str, list[str], str]]:
    """Yield receiver type, name, argument types and result type of each overload."""
    for line in _FUNCTIONS.strip().splitlines():
        match = _DECLARATION.fullmatch(line.strip())
        assert match is not None, line
        target, name, arguments, result = match.groups(default="")
        if target in _NAMESPACES:
            target, name = "", f"{target}.{name}"
        yield target, name, arguments.split(",") if arguments else [], result
    for name in _FORMATS.split():
        yield "", f"format.{name}", [], "Format"
    for item in _COMPARABLE:
        yield f"list<{item}>", "isSorted", [], "bool"
        yield f"list<{item}>", "min", [], item
        yield f"list<{item}>", "max", [], item
        yield from (("", name, [item, item], "bool") for name in _COMPARISONS)
    yield from (("", "string", [item], "string") for item in _TEXTUAL)
    # The library also converts integers, which cel-go does not.
    yield from (("", "duration", [item], "duration") for item in ("string", "duration"))
    for item in _SUMMABLE:
        yield f"list<{item}>", "sum", [], item
    for one in _NUMBERS:
        for other in _NUMBERS:
            if one != other:
                yield from (("", name, [one, other], "bool") for name in _COMPARISONS)


_WELL_KNOWN = (struct_pb2, timestamp_pb2, duration_pb2)
_PACKAGE = "capsmith"
_KEYWORD_LIST = """
    true false null in as break const continue else for function if import let loop package
    namespace return var void while
"""
_KEYWORDS = frozenset(_KEYWORD_LIST.split())
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
# The API server validates other formats, such as uuid or email, but for rules they stay strings.
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
"""A type in the form used in environment configurations."""


def escape(name: str) -> str | None:
    """Return a property's name as written in rules, or None if rules cannot refer to it."""
    # Like cel.Escape in k8s.io/apiserver/pkg/cel: rules use these names instead of the schema's.
    if name in _KEYWORDS:
        return f"__{name}__"
    if not re.fullmatch(r"[A-Za-z_./-][A-Za-z0-9_./-]*", name):
        return None
    return re.sub(r"__|[./-]", lambda match: _ESCAPES[match[0]], name)


@dataclass(slots=True)
class Declarations:
    """The CEL types that one schema declares.

    ``fields`` maps each message name to the names of the fields that rules can select.
    """

    fields: dict[str, list[str]] = field(default_factory=dict)
    has_parsed_texts: bool = False
    """Whether rules see any of the strings as a timestamp, a duration or bytes."""
    _file: descriptor_pb2.FileDescriptorProto = field(
        default_factory=lambda: descriptor_pb2.FileDescriptorProto(
            name="capsmith.proto",
            package=_PACKAGE,
            syntax="proto2",
            dependency=[module.DESCRIPTOR.name for module in _WELL_KNOWN],
        )
    )

    def declare(self, schema: Mapping[str, Any]) -> CelType | None:
        """Declare a schema and return its values' CEL type, or None if rules cannot read it."""
        # Checked first, because such a schema has no type. Only Kubernetes' own kinds have
        # quantities, which are numbers or texts.
        if schema.get("x-kubernetes-int-or-string") or schema.get("type") == "quantity":
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
            # A property that no rule can read is left out, so that rules that select it do not
            # compile.
            if (escaped := escape(name)) and (declared := self.declare(below)):
                properties[escaped] = declared
                if name in _KEYWORDS:
                    # The API server also accepts the name itself, where CEL's grammar does.
                    properties[name] = declared
        name = f"Object{len(self.fields) + 1}"
        message = self._file.message_type.add(name=name)
        # Names such as ip_address and ipAddress have the same JSON name, which is not used.
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
        # Protocol buffers reserve 19000 to 19999.
        number=number if number < 19_000 else number + 1_000,
        label=_FIELD.LABEL_OPTIONAL,
    )
    kind = declared["type_name"]
    # A map field is a repeated message named after it, with the option `map_entry`; protocol
    # buffers prescribe the name.  Two fields can result in the same name, such as `a_b` and `aB`;
    # the second becomes a Struct, which is checked less strictly.
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
