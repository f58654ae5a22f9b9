"""An overlay: the author's blueprints, which replace capsmith's own or add to them.

Parses an overlay's files into an :class:`Overlay` or findings.  Neither reads from disk nor
renders.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capsmith.blueprint.plan import CONDITIONS, BlueprintEntry, BlueprintScope
from capsmith.findings import Finding, Location
from capsmith.tree import Owner, digest_texts
from capsmith.yamldoc.document import PathReporter, parse_document
from capsmith.yamldoc.quote import quote, suggest

MOST_ROWS = 500
_KEYS = ("source", "target", "for_each", "when", "owner", "executable")
_TARGET = re.compile(r"(\{[a-z_]+\}|[A-Za-z0-9._@+/-])+")
_NAME = re.compile(r"\{([a-z_]+)\}")
_OF_PROVIDERS = ("package", "provider")
_OF_COMPONENTS = (*_OF_PROVIDERS, "config", "component", "type")
_OF_RESOURCES = (*_OF_COMPONENTS, "module", "crd_name", "group", "plural", "singular")
NAMES: Mapping[BlueprintScope, Collection[str]] = {
    BlueprintScope.PROVIDER: _OF_PROVIDERS,
    BlueprintScope.COMPONENT: _OF_COMPONENTS,
    BlueprintScope.RESOURCE: _OF_RESOURCES,
    BlueprintScope.RECONCILED_RESOURCE: _OF_RESOURCES,
    BlueprintScope.TYPED_RESOURCE: _OF_RESOURCES,
    BlueprintScope.IDENTITY_RESOURCE: _OF_RESOURCES,
    BlueprintScope.FLAVOR: (*_OF_COMPONENTS, "flavor"),
    BlueprintScope.CLUSTER_CLASS: (*_OF_COMPONENTS, "cluster_class"),
}
"""Placeholders that a row's target path may contain, by the row's scope."""


@dataclass(frozen=True, slots=True)
class OverlayRow:
    """A row in an overlay's ``manifest.yaml``, with its location for findings."""

    entry: BlueprintEntry
    location: Location


def read_rows(
    text: str, file: str, sources: Collection[str]
) -> tuple[tuple[OverlayRow, ...], list[Finding]]:
    """Parse the rows under ``files`` in an overlay's manifest. Return them with all findings.

    ``text`` is the manifest, and ``file`` the name to use in findings.  ``sources`` are the
    overlay's blueprints, as paths relative to project/.  Finding ids: ``overlay-manifest``,
    ``overlay-unknown-key``, ``overlay-source``, ``overlay-target``, ``overlay-not-one-of``, and all
    ids of :func:`capsmith.yamldoc.document.parse_document`.
    """
    document, found = parse_document(text, file)
    if document is None:
        return (), list(found)
    findings: list[Finding] = []
    top = PathReporter(document, (), findings)
    _known(top, document.data, ("files",))
    listed = document.data.get("files")
    if not isinstance(listed, list) or len(listed) > MOST_ROWS:
        message = f"`files` must be a list of at most {MOST_ROWS} rows"
        top.add_error(
            "overlay-manifest", message, "Write `files: [{source: …, target: …}]`.", "files"
        )
        return (), findings
    rows = []
    for number, row in enumerate(listed):
        read = _row(row, top.at("files", number), sources)
        if read is not None:
            rows.append(OverlayRow(read, document.value(("files", number))))
    return tuple(rows), findings


def _row(row: Any, reporter: PathReporter, sources: Collection[str]) -> BlueprintEntry | None:
    if not isinstance(row, dict):
        reporter.add_error(
            "overlay-manifest", "a row must be a mapping", "Write `{source: …, target: …}`."
        )
        return None
    # A row with a finding is not checked further, because more findings would only be consequences.
    before = len(reporter.findings)
    _known(reporter, row, _KEYS)
    source = _text(row, reporter, "source", "")
    if source not in sources and not reporter.findings[before:]:
        message = f"this overlay has no blueprint {quote('project/' + source)}"
        below = ("source",) if "source" in row else ()
        reporter.add_error("overlay-source", message, suggest(source, sources), *below)
    if not source.endswith(".jinja"):
        reporter.add_error(
            "overlay-source", "the name of a blueprint must end in .jinja", "Rename it."
        )
    scope = _text(row, reporter, "for_each", BlueprintScope.PROVIDER, tuple(NAMES))
    owner = _text(row, reporter, "owner", Owner.GENERATED, tuple(Owner))
    when = _conditions(row, reporter)
    target = _text(row, reporter, "target", source.removesuffix(".jinja"))
    executable = row.get("executable", False)
    if not isinstance(executable, bool):
        reporter.add_error(
            "overlay-manifest", "`executable` must be true or false", "", "executable"
        )
    if reporter.findings[before:]:
        return None
    _check_target(target, BlueprintScope(scope), reporter)
    if reporter.findings[before:]:
        return None
    return BlueprintEntry(source, target, BlueprintScope(scope), when, Owner(owner), executable)


def _known(reporter: PathReporter, mapping: Mapping[str, Any], keys: Collection[str]) -> None:
    for key in mapping:
        if key not in keys:
            hint = suggest(key, keys)
            reporter.add_error_at_key("overlay-unknown-key", f"unknown key {quote(key)}", hint, key)


def _text(
    row: Mapping[str, Any],
    reporter: PathReporter,
    key: str,
    default: str,
    known: Collection[str] = (),
) -> str:
    value = row.get(key, default)
    if not isinstance(value, str):
        reporter.add_error("overlay-manifest", f"`{key}` must be a string", "", key)
    elif known and value not in known:
        _not_one_of(reporter, value, known, key)
    else:
        return str(value)
    return str(default)


def _conditions(row: Mapping[str, Any], reporter: PathReporter) -> tuple[str, ...]:
    when = row.get("when", [])
    names = [when] if isinstance(when, str) else when
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        reporter.add_error(
            "overlay-manifest", "`when` must be a name or a list of names", "", "when"
        )
        return ()
    for name in names:
        if name not in CONDITIONS:
            _not_one_of(reporter, name, CONDITIONS, "when")
    return tuple(names)


def _not_one_of(reporter: PathReporter, value: str, known: Collection[str], key: str) -> None:
    hint = suggest(value, known)
    reporter.add_error("overlay-not-one-of", f"`{key}` cannot be {quote(value)}", hint, key)


def _check_target(target: str, scope: BlueprintScope, reporter: PathReporter) -> None:
    below = ("target",) if (*reporter.path, "target") in reporter.document.marks else ()
    if not _TARGET.fullmatch(target):
        message = f"{quote(target)} is not a path of letters, digits and names in braces"
        reporter.add_error(
            "overlay-target", message, "Write a path such as docs/{module}.md.", *below
        )
        return
    names = NAMES[scope]
    for name in _NAME.findall(target):
        if name not in names:
            message = f"{quote('{' + name + '}')} is not defined in a row for each `{scope}`"
            reporter.add_error("overlay-target", message, suggest(name, names), *below)


MANIFEST = "manifest.yaml"
PROJECT = "project/"
MACROS = "macros/"


@dataclass(frozen=True, slots=True)
class Overlay:
    """A folder of blueprints that the author wrote.

    ``where`` is the folder as shown in findings, ``named`` its path in provider.yaml, ``texts`` its
    files' content by path, and ``rows`` its manifest's rows.
    """

    where: str
    """Path to the folder, as shown in findings."""
    named: str
    """Path to the folder as written in provider.yaml, relative to that file; else empty."""
    texts: Mapping[str, str]
    r"""Contents of all files by path, with ``\n`` line endings."""
    rows: tuple[OverlayRow, ...]
    """Manifest rows for files that the overlay adds to capsmith's own."""

    @property
    def sources(self) -> Mapping[str, str]:
        """Return the source of each blueprint and macro in the overlay, by path."""
        return {path: text for path, text in self.texts.items() if path != MANIFEST}

    @property
    def digest(self) -> str:
        """Return a digest of all paths and contents, which does not depend on the location."""
        return digest_texts(self.texts)


def parse_overlay(
    texts: Mapping[str, str], own: Mapping[str, str], where: str, named: str
) -> tuple[Overlay | None, tuple[Finding, ...]]:
    """Parse ``texts``, an overlay's files by path. Return None and findings if any file is invalid.

    ``where`` is the folder as shown in findings, and ``named`` its path in provider.yaml.  ``own``
    holds capsmith's blueprints by path.  Finding ids: ``overlay-empty``, ``overlay-unknown``,
    ``overlay-unused``, ``overlay-macro``, and all ids of :func:`read_rows`.
    """
    findings: list[Finding] = []
    rows: tuple[OverlayRow, ...] = ()
    if MANIFEST in texts:
        projects = {p.removeprefix(PROJECT) for p in texts if p.startswith(PROJECT)}
        rows, found = read_rows(texts[MANIFEST], f"{where}/{MANIFEST}", projects)
        findings += found
    named_sources = {PROJECT + row.entry.source for row in rows}
    if not findings:  # else a row that cannot be read might name them
        findings += _unused(texts, own, named_sources, where)
    findings += _misplaced(texts, own, where)
    if not texts:
        hint = "Add files below project/: each replaces the one with the same path."
        findings.append(
            Finding(
                "overlay-empty", "the folder contains no blueprints", Location(where), hint=hint
            )
        )
    if findings:
        return None, tuple(findings)
    return Overlay(where, named, texts, rows), ()


def _unused(
    texts: Mapping[str, str], own: Mapping[str, str], named: set[str], where: str
) -> Iterator[Finding]:
    for path in texts:
        if not path.startswith(PROJECT) or path in own or path in named:
            continue
        near = difflib.get_close_matches(path, [p for p in own if p.startswith(PROJECT)], n=1)
        yield Finding(
            "overlay-unused",
            "this neither replaces a blueprint of capsmith nor is in manifest.yaml",
            Location(f"{where}/{path}"),
            hint=f"Did you mean `{near[0]}`?" if near else "Add a row to manifest.yaml.",
        )


def _misplaced(texts: Mapping[str, str], own: Mapping[str, str], where: str) -> Iterator[Finding]:
    for path in texts:
        location = Location(f"{where}/{path}")
        # An overlay's macro of that name would change the output of blueprints that the author does
        # not see.
        if path.startswith(MACROS) and path in own:
            yield Finding(
                "overlay-macro",
                "capsmith's own blueprints include this, so it cannot be replaced",
                location,
                hint="Give it another name, and replace the blueprints that must include it.",
            )
        elif path != MANIFEST and not path.startswith((PROJECT, MACROS)):
            names = [MANIFEST, PROJECT.rstrip("/"), MACROS.rstrip("/")]
            near = difflib.get_close_matches(path.split("/")[0], names, n=1)
            yield Finding(
                "overlay-unknown",
                "an overlay can only contain project/, macros/ and manifest.yaml",
                location,
                hint=f"Did you mean `{near[0]}`?" if near else "Move it away.",
            )
