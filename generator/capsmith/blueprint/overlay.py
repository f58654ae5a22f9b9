"""An overlay: the author's blueprints, which replace capsmith's or add to them.

Turns texts by path into an :class:`Overlay` or findings.  Must not read from disk or render.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capsmith.blueprint.overlay_manifest import Row, read_rows
from capsmith.findings import Finding, Location, ordered
from capsmith.tree import digest_of_texts

MANIFEST = "manifest.yaml"
PROJECT = "project/"
MACROS = "macros/"


@dataclass(frozen=True, slots=True)
class Overlay:
    """The blueprints of one folder."""

    where: str
    """The folder, as findings name it."""
    named: str
    """The folder as provider.yaml names it, relative to its own; empty if it does not name one."""
    texts: Mapping[str, str]
    """All its files by path, with ``\\n`` line ends."""
    rows: tuple[Row, ...]
    """The files that it adds to capsmith's."""

    @property
    def sources(self) -> Mapping[str, str]:
        """Return its blueprints and macros by path."""
        return {path: text for path, text in self.texts.items() if path != MANIFEST}

    @property
    def digest(self) -> str:
        """Return the digest of paths and texts, which does not depend on the folder."""
        return digest_of_texts(self.texts)


def overlay_of(
    texts: Mapping[str, str], own: Mapping[str, str], where: str, named: str
) -> tuple[Overlay | None, tuple[Finding, ...]]:
    """Return the overlay in ``where`` with these ``texts``, or None and the findings on them.

    ``own`` holds the blueprints of capsmith, by path.  Ids: ``overlay-empty``, ``overlay-unknown``,
    ``overlay-unused``, ``overlay-macro`` and those of :mod:`capsmith.blueprint.overlay_manifest`.
    """
    findings: list[Finding] = []
    rows: tuple[Row, ...] = ()
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
        return None, ordered(findings)
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
