"""Parse multi-document YAML files into :class:`Manifest` objects.

Also determines which values come from clusterctl variables.  Broken or hostile input is reported as
findings.  Opens no files.
"""

from __future__ import annotations

import bisect
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, TypeGuard

import yaml

from capsmith.findings import Finding, Location
from capsmith.manifests.go_yaml import STRING, choose_tag, convert_node
from capsmith.manifests.variables import substitute
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.document import find_line_starts

MAX_CHARACTERS = 16 * 1024 * 1024
"""Maximum length of a parsed file, in characters."""
MAX_NODES = 2_000_000
"""Maximum size of a document with its aliases expanded, in YAML nodes."""
MAX_DEPTH = 200
"""Maximum nesting depth of a document. libyaml's recursive composer crashes on deeper documents."""
_STRUCTURE = re.compile(r"\n[ \t?:-]{100}")
_LIST, _MAP = (f"tag:yaml.org,2002:{name}" for name in ("seq", "map"))
_SYNTAX = "manifest-yaml"
_NO_MAPPINGS = frozenset({str, int, float, bool, list, type(None)})
_SEPARATOR = re.compile(r"\n---[ \t\r\f\v\x85\xa0]*(?:#[^\n]*)?(?=\n|\Z)")
_REFUSED_SEPARATOR = re.compile(r"\n---[ \t\r\f\v\x85\xa0]*[^ \t\r\n\f\v\x85\xa0#]")
_CONTENT = "clusterctl accepts nothing but a comment behind `---`"
_DOCUMENT_START = re.compile(r"\n---(?=[ \t\r\n]|\Z)")
_ALIAS = re.compile(r"\*(?<![^\s\[{,:?]\*)\S")
"""Finds each alias, and some other text: a node can only begin after one of these characters."""
# Use libyaml if PyYAML was built with it: components files are large, and the Python loader is
# slow.
_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SCALAR, _MAPPING = yaml.ScalarNode, yaml.MappingNode


@lru_cache(8192)
def _choose_tag(kind: type[yaml.Node], value: Any, implicit: Any) -> str:
    """Return the tag of a node without an explicit one."""
    if kind is _SCALAR:
        return choose_tag(value) if implicit[0] else STRING
    return _MAP if kind is _MAPPING else _LIST


class _Loader(_BASE):  # type: ignore[misc] # the base is chosen at run time
    """A loader that gives plain scalars the tags that :func:`convert_node` expects."""

    resolve = staticmethod(_choose_tag)
    # No tag depends on a path, so there is nothing to do before and after each node.  A call of a
    # built-in takes a third of the time of a function's.
    descend_resolver = staticmethod(operator.is_)
    ascend_resolver = staticmethod(tuple)


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
    """A Kubernetes object read from a file."""

    file: str
    line: int
    """Line of the file at which the document begins (1-based)."""
    document: Mapping[str, Any]
    text: str = ""
    """Content of the whole file before variables are replaced."""

    @property
    def location(self) -> Location:
        """Return the location to use in findings about this object."""
        return Location(self.file, self.line, 1)

    @property
    def base_name(self) -> str:
        """Return the file's name without its folders."""
        return self.file.replace("\\", "/").rpartition("/")[2]

    @property
    def folder(self) -> PurePosixPath:
        """Return the folder that contains the file."""
        return PurePosixPath(self.file.replace("\\", "/")).parent

    @property
    def kind(self) -> str:
        """Return the kind; empty if missing."""
        value = self.document.get("kind")
        return value if isinstance(value, str) else ""

    @property
    def api_group(self) -> str:
        """Return the API group; empty for the core group."""
        return text_of(self.document, "apiVersion").rpartition("/")[0]

    @property
    def name(self) -> str:
        """Return ``metadata.name``; empty if missing."""
        return text_of(self.document, "metadata", "name")

    def mapping(self, *path: str) -> Mapping[str, Any]:
        """Return the mapping at ``path``, or an empty one if there is none."""
        return mapping_of(self.document, *path)

    def listing(self, *path: str) -> list[Any]:
        """Return the list at ``path``, or an empty one if there is none."""
        return list_of(self.document, *path)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def parse_manifests(text: str, file: str) -> tuple[tuple[Manifest, ...], tuple[Finding, ...]]:
    """Parse a YAML file into objects, with findings about documents that cannot be parsed.

    ``text`` is the file's content, and ``file`` its name in findings.  Finding ids:
    ``manifest-too-large``, ``manifest-yaml``, ``manifest-not-a-mapping``.
    """
    if len(text) > MAX_CHARACTERS:
        return (), (_finding("manifest-too-large", "the file is too long for a manifest", file),)
    return read_substituted(substitute(text), file, text)


def read_substituted(
    substituted: str, file: str, text: str, *, resume: bool = False
) -> tuple[tuple[Manifest, ...], tuple[Finding, ...]]:
    """Parse a file in which variables have already been replaced.

    ``substituted`` is the content to parse, ``text`` is the original content, and ``file`` is the
    name to use in findings.  ``resume`` is whether to go on after a document that cannot be parsed.
    """
    whole = Manifest(file, 0, {}, text)
    manifests: list[Manifest] = []
    findings: list[Finding] = []
    # Like clusterctl, which separates the documents before it parses them.
    for line, part in split_documents(substituted) if resume else [(0, substituted)]:
        found, wrong = _read_stream(part, replace(whole, line=line))
        manifests += found
        findings += wrong
    if resume:
        findings += _find_refused_separators(substituted, file)
    return tuple(manifests), tuple(findings)


def split_documents(text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a file that clusterctl parses, and the number of lines before each."""
    begin = line = 0
    for match in _SEPARATOR.finditer("\n" + text):
        part = text[begin : match.start()]
        yield line, part
        line += len(find_line_starts(part)) - 1
        # A comment behind the separator need not have a space before it, unlike in YAML.
        begin = match.end() - 1
    yield line, text[begin:]


def _find_refused_separators(text: str, file: str) -> Iterator[Finding]:
    """Yield findings on lines that begin like a separator of documents, but have content."""
    starts = find_line_starts(text)
    for match in _REFUSED_SEPARATOR.finditer("\n" + text):
        yield _finding(_SYNTAX, _CONTENT, file, bisect.bisect_right(starts, match.start()))


def _read_stream(text: str, whole: Manifest) -> tuple[list[Manifest], list[Finding]]:
    """Parse a part of a file, which begins after line ``whole.line`` of it."""
    file, before = whole.file, whole.line
    manifests: list[Manifest] = []
    findings: list[Finding] = []
    try:
        for line, document in _documents(text):
            if isinstance(document, dict):
                manifests.extend(_flat(Manifest(file, before + line, document, whole.text)))
            elif document is not None:
                message = "the document is not an object"
                findings.append(_finding("manifest-not-a-mapping", message, file, before + line))
    except yaml.YAMLError as error:
        findings.append(_syntax(error, file, before))
    except (ValueError, OverflowError, RecursionError) as error:
        findings.append(_finding(_SYNTAX, f"cannot be read as YAML: {error}", file))
    return manifests, findings


def mapping_of(data: Any, *path: str) -> Mapping[str, Any]:
    """Return the mapping at ``path`` in plain data, or an empty one if there is none."""
    value = at(data, *path)
    return value if is_mapping(value) else {}


def list_of(data: Any, *path: str) -> list[Any]:
    """Return the list at ``path`` in plain data, or an empty one if there is none."""
    value = at(data, *path)
    return value if isinstance(value, list) else []


def texts_of(data: Any, *path: str) -> list[str]:
    """Return the strings in the list at ``path`` in plain data, without items of other types."""
    return [item for item in list_of(data, *path) if isinstance(item, str)]


def text_of(data: Any, *path: str) -> str:
    """Return the string at ``path`` in plain data, or an empty string if there is none."""
    value = at(data, *path)
    return value if isinstance(value, str) else ""


def at(data: Any, *path: str) -> Any:
    """Return the value at ``path`` in plain data, or None if there is none."""
    for key in path:
        if type(data) is not dict and not is_mapping(data):
            return None
        data = data.get(key)
    return data


def may_have_null(data: Any) -> bool:
    """Return whether plain data may contain a null; False is certain."""
    # Hardly any object has one, and to format it takes a tenth of the time of visiting its values.
    return "None" in repr(data)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether a value is a mapping."""
    # Nearly all values are of these types, and a check against an ABC takes ten times as long.
    kind = type(value)
    return kind is dict or (kind not in _NO_MAPPINGS and isinstance(value, Mapping))


def _documents(text: str) -> Iterator[tuple[int, Any]]:
    refuse_depth(text)
    # Without aliases, a document has at most one node per character.
    may_expand = len(text) >= MAX_NODES or _ALIAS.search(text) is not None
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                continue
            # Aliases share a node, so composing is cheap, but a check that walks the document
            # visits the target of an alias each time it is used.
            if may_expand and _weight(node, {}) > MAX_NODES:
                raise ValueError("its aliases expand to too many nodes")
            yield node.start_mark.line + 1, convert_node(node)
    finally:
        loader.dispose()


def compose_document(text: str) -> yaml.Node | None:
    """Return the nodes of the first document in a text; None if there is none, or no YAML."""
    loader = _Loader(text)
    try:
        node: yaml.Node | None = loader.get_node() if loader.check_node() else None
    except yaml.YAMLError:
        return None
    finally:
        loader.dispose()
    return node


def _may_be_deep(lines: str) -> bool:
    """Return whether lines could be deeply nested, judging cheaply by brackets and indentation."""
    brackets = lines.count("[") + lines.count("{")
    return brackets > MAX_DEPTH // 2 or _STRUCTURE.search(lines) is not None


def refuse_depth(text: str) -> None:
    """Raise ValueError if a document is nested too deeply for the composer."""
    # With a break before each line: a pattern that begins with it is found ten times as fast.
    lines = "\n" + text
    if not _may_be_deep(lines):
        return
    # Brackets are closed at the end of a document, so few documents in a file need the parser.
    suspects = ["\n" + part for part in _DOCUMENT_START.split(lines) if _may_be_deep("\n" + part)]
    try:
        for part in suspects:
            _measure_depth(part)
    except yaml.YAMLError:
        # A document may depend on what comes before it, such as a directive.
        _measure_depth(text)


def _measure_depth(text: str) -> None:
    depth = 0
    # Events come from a parser that does not recurse, unlike the composer that would crash.
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError("it is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _weight(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of nodes below a node, with every alias expanded.

    ``known`` caches results by the id of the node.
    """
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = MAX_NODES  # an alias to a node around it never ends
    if isinstance(node, yaml.MappingNode):
        below = [part for pair in node.value for part in pair]
    else:
        below = node.value if isinstance(node, yaml.SequenceNode) else []
    known[id(node)] = 1 + sum(_weight(part, known) for part in below)
    return known[id(node)]


def _flat(manifest: Manifest) -> Iterator[Manifest]:
    # A List is a kubectl container; clusterctl installs its items.
    if manifest.kind == "List" and manifest.listing("items"):
        for item in manifest.listing("items"):
            if isinstance(item, dict):
                yield Manifest(manifest.file, manifest.line, item, manifest.text)
    else:
        yield manifest


def _syntax(error: yaml.YAMLError, file: str, before: int) -> Finding:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    line = before + mark.line + 1 if mark else 0
    return _finding(_SYNTAX, f"invalid YAML: {problem}", file, line)


def _finding(id: str, message: str, file: str, line: int = 0) -> Finding:
    hint = "Write Kubernetes manifests as YAML mappings, separated by `---`."
    return Finding(id, message, Location(file, line, 1 if line else 0), hint=hint)


SAMPLE = "capsmith-sample"
"""Placeholder for a variable whose value is unknown. A string that contains it matches any
schema."""
_KEPT = 4


def has_variable(text: str) -> bool:
    """Return whether a string contains a variable whose value is unknown."""
    return SAMPLE in text or "${" in text


def may_vary(manifest: Manifest, path: Path, is_deep: bool = False) -> bool:
    """Return whether variables let a user change the value at ``path``, or one of its entries.

    If ``is_deep`` is true, values at any depth below ``path`` count, too.  Variables without a
    default are replaced with samples before an object is checked, so this function reads the
    original source. If the source is not valid YAML, any value may vary.
    """
    if "$" not in manifest.text:
        return False
    found = [
        each
        for each in _originals(manifest.text)
        if each.line == manifest.line and each.kind == manifest.kind
    ]
    # Two objects on one line are items of a List, and it is unknown which one is meant.
    return len(found) != 1 or _varies(find_value(found[0].document, path), is_deep)


def _varies(value: Any, is_deep: bool) -> bool:
    entries: Iterable[Any] = value if isinstance(value, list | dict) else [value]
    if any(isinstance(each, str) and has_variable(each) for each in entries):
        return True
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return is_deep and any(_varies(each, is_deep) for each in below)


def find_value(document: Any, path: Path) -> Any:
    """Return the value at ``path``, the last string on the way to it, or None."""
    for step in path:
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return document if isinstance(document, str) else None
    return document


# Checks read the objects of a file one after another, and the file may have megabytes.
@lru_cache(_KEPT)
def _originals(text: str) -> tuple[Manifest, ...]:
    manifests, wrong = parse_manifests(text, "")
    return () if wrong else manifests
