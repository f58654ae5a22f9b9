"""Kubernetes' CEL functions, as the configuration of a CEL environment.

A rule that calls a function added after :data:`RELEASE` is refused, as an API server of
:data:`RELEASE` refuses it.  Source: k8s.io/apiserver/pkg/cel/library and environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

RELEASE = "1.33"
"""Kubernetes release whose functions rules may call.

A CRD must work on every API server that the provider supports, so this is not the newest release.
API servers follow the same policy: new expressions may use only functions that the previous
Kubernetes release already has."""

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


def build_environment() -> dict[str, Any]:
    """Return an environment configuration that declares Kubernetes' functions but no variables."""
    overloads: dict[str, list[dict[str, Any]]] = {}
    for number, (target, name, arguments, result) in enumerate(_declarations()):
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
        # A function has one declaration: CEL's own ones cannot be extended, only replaced.
        "stdlib": {"exclude_functions": [{"name": name} for name in (*_COMPARISONS, "string")]},
        "extensions": _EXTENSIONS,
        "functions": [{"name": name, "overloads": found} for name, found in overloads.items()],
    }


def parse_type(text: str) -> dict[str, Any]:
    """Convert a type such as ``list<string>`` to the form used by the configuration."""
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
    for item in _SUMMABLE:
        yield f"list<{item}>", "sum", [], item
    for one in _NUMBERS:
        for other in _NUMBERS:
            if one != other:
                yield from (("", name, [one, other], "bool") for name in _COMPARISONS)
