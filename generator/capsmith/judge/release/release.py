"""Read the files of releases: objects after substitution, and the positions of what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from capsmith.findings import Finding, Location
from capsmith.judge.release.substitute import Substituted, substitute
from capsmith.manifests.bundle import Artefact, artefact
from capsmith.manifests.parse import Manifest, read_substituted
from capsmith.manifests.variable_values import SAMPLE
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.layout import nearest

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NEAR = 2
"""Lines around a syntax error in which a block that is not known may be its cause."""


class SourceFile(NamedTuple):
    """A file of a release."""

    name: str
    text: str
    alone: bool = False
    """Whether it was named itself, so that the files beside it are not known."""


@dataclass
class Release:
    """All that was read."""

    manifests: tuple[Manifest, ...] = ()
    findings: tuple[Finding, ...] = ()
    """On files that cannot be read."""
    texts: dict[str, Substituted] = field(default_factory=dict)
    alone: set[str] = field(default_factory=set)
    """Names of files whose neighbours are not known."""
    _nodes: dict[tuple[str, int], yaml.Node | None] = field(default_factory=dict)

    def locate(self, manifest: Manifest, path: Path) -> Location:
        """Return the position in the original file of ``path``, or of its nearest parent."""
        text = self.texts.get(manifest.file)
        if text is None:
            return manifest.location
        line, column = manifest.line, 1
        if path:
            mark = nearest(self._node(manifest, text), path)
            if mark is not None:
                line, column = mark.line + manifest.line, mark.column + 1
        return Location(manifest.file, *text.position(line, column))

    def _node(self, manifest: Manifest, text: Substituted) -> yaml.Node | None:
        """Return the YAML nodes of one document, which are composed for the first violation."""
        key = (manifest.file, manifest.line)
        if key not in self._nodes:
            lines = text.text.split("\n", manifest.line - 1)
            loader = _LOADER(lines[-1] if len(lines) == manifest.line else "")
            try:
                self._nodes[key] = loader.get_node() if loader.check_node() else None
            except yaml.YAMLError:
                self._nodes[key] = None
            finally:
                loader.dispose()
        return self._nodes[key]


def read_release(files: Iterable[SourceFile]) -> Release:
    """Return the objects of the files, with sample values for their variables."""
    release = Release()
    manifests: list[Manifest] = []
    findings: list[Finding] = []
    for file in files:
        found, wrong, text = _read(file)
        release.texts[file.name] = text
        if file.alone:
            release.alone.add(file.name)
        manifests.extend(found)
        if not found and not wrong and is_release_asset(file.name):
            findings.append(_empty(file.name))
        # Other files of a source tree may be patches or values, which nothing reads as manifests.
        if file.alone or is_release_asset(file.name):
            findings.extend(wrong)
    release.manifests, release.findings = tuple(manifests), tuple(findings)
    return release


def _read(file: SourceFile) -> tuple[tuple[Manifest, ...], tuple[Finding, ...], Substituted]:
    # clusterctl replaces no variables in metadata.yaml.
    plain = file.name.replace("\\", "/").rpartition("/")[2] == "metadata.yaml"
    text = Substituted(file.text, file.text) if plain else substitute(file.text)
    found, wrong = read_substituted(text.text, file.name, file.text)
    if wrong and SAMPLE in text.text:
        # A variable that is alone in its line may hold a block; nothing is one as well.
        text = substitute(file.text, alone="")
        found, wrong = read_substituted(text.text, file.name, file.text)
        wrong = tuple(each for each in wrong if not _near_sample(text, each))
    if text.refused and not found:
        wrong = (_refused(file.name, text), *wrong)
    moved = (each._replace(location=_original(text, each.location)) for each in wrong)
    return found, tuple(moved), text


def _empty(file: str) -> Finding:
    """Return the finding on an asset without objects, such as the output of a failed build."""
    return Finding(
        "manifest-empty",
        "the file contains no objects",
        Location(file, 1, 1),
        hint="Build it again.",
    )


def _refused(file: str, text: Substituted) -> Finding:
    """Return the finding on a form that clusterctl refuses, in a file without objects."""
    before = text.original[: text.refused - 1]
    shown = text.original[text.refused - 1 :][:40].partition("\n")[0]
    return Finding(
        "manifest-variable",
        f"variable {shown} is malformed",
        Location(file, before.count("\n") + 1, 1),
        hint="Close the brace, or write $$ for a dollar.",
    )


def _near_sample(text: Substituted, finding: Finding) -> bool:
    """Return whether a value that is not known may be the cause.

    That is one in the line of the error, one in the line before that the error continues, or one
    that may be a block.
    """
    lines, original, line = text.text.split("\n"), text.original.split("\n"), finding.location.line
    before, here = ("", *lines, "")[max(line, 1) - 1 : max(line, 1) + 1]
    if SAMPLE in here or (SAMPLE in before and _indent(here) > _indent(before)):
        return True
    near = range(max(line - _NEAR, 1), min(line + _NEAR, len(lines)) + 1)
    return any(
        not lines[number - 1].strip() and original[text.position(number, 1)[0] - 1].strip()
        for number in near
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _original(text: Substituted, location: Location) -> Location:
    if not location.line:
        return location
    return Location(location.file, *text.position(location.line, max(location.column, 1)))


def is_release_asset(name: str) -> bool:
    """Return whether clusterctl would read a file of that name."""
    manifest = Manifest(name, 1, {"apiVersion": "v1", "kind": "Any"})
    return artefact(manifest) not in (Artefact.SOURCE, Artefact.ASIDE)


def lines_of(texts: Mapping[str, Substituted], location: Location) -> tuple[str, ...]:
    """Return the line of a location and the one before, as they are in the original."""
    text = texts.get(location.file)
    if text is None or not location.line:
        return ()
    lines = text.original.split("\n", location.line)
    return tuple(lines[max(location.line - 2, 0) : location.line])
