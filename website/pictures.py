"""The pictures of the explanation, as SVG: boxes and arrows on a grid.

``python -m website.pictures`` writes them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape

from website.sources import ROOT

FOLDER = ROOT / "docs" / "pictures"
_WIDTH, _HEIGHT = 176, 46
_COLORS = {
    "core": ("#e8eaf6", "#3f51b5"),
    "yours": ("#e8f5e9", "#2e7d32"),
    "capsmith": ("#fff3e0", "#e65100"),
    "cloud": ("#eceff1", "#546e7a"),
}


class Box(NamedTuple):
    """A box at its centre; ``owner`` says who writes what it shows."""

    x: int
    y: int
    owner: str
    title: str
    note: str = ""


class Arrow(NamedTuple):
    """An arrow from one box to another, by their titles."""

    start: str
    end: str
    label: str = ""
    dashed: bool = False


class Picture(NamedTuple):
    """A picture with its description for those who cannot see it."""

    name: str
    title: str
    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


OWNERS = Picture(
    "owners",
    "Cluster API's objects own those of the provider, and capsmith's manager calls your code.",
    760,
    400,
    (
        Box(120, 60, "core", "Cluster"),
        Box(380, 60, "core", "MachineDeployment", "and control plane"),
        Box(640, 60, "core", "Machine"),
        Box(120, 190, "capsmith", "AcmeCluster", "infrastructureRef"),
        Box(380, 190, "capsmith", "AcmeMachineTemplate"),
        Box(640, 190, "capsmith", "AcmeMachine", "infrastructureRef"),
        Box(120, 290, "yours", "reconcile_normal", "of clusters"),
        Box(640, 290, "yours", "reconcile_normal ", "of machines"),
        Box(380, 360, "cloud", "Your infrastructure", "networks, servers"),
    ),
    (
        Arrow("Cluster", "MachineDeployment", "owns"),
        Arrow("MachineDeployment", "Machine", "owns"),
        Arrow("Cluster", "AcmeCluster", "owns"),
        Arrow("Machine", "AcmeMachine", "owns"),
        Arrow("MachineDeployment", "AcmeMachineTemplate", "names"),
        Arrow("AcmeMachineTemplate", "AcmeMachine", "is copied"),
        Arrow("AcmeCluster", "reconcile_normal", "scope", True),
        Arrow("AcmeMachine", "reconcile_normal ", "scope", True),
        Arrow("reconcile_normal", "Your infrastructure"),
        Arrow("reconcile_normal ", "Your infrastructure"),
    ),
)
RECONCILE = Picture(
    "reconcile",
    "One reconcile: what capsmith does before and after your method.",
    760,
    430,
    (
        Box(120, 60, "core", "API server", "watch event"),
        Box(380, 60, "capsmith", "Cache and queue", "each key once at a time"),
        Box(640, 60, "capsmith", "Moved, paused?", "then leave it unchanged"),
        Box(640, 170, "capsmith", "Finalizer", "before any side effect"),
        Box(380, 170, "capsmith", "Wait", "owner, cluster, data"),
        Box(120, 170, "capsmith", "Scope", "spec, session, client"),
        Box(120, 280, "yours", "reconcile_normal"),
        Box(380, 280, "cloud", "Your infrastructure"),
        Box(120, 390, "capsmith", "State or Waiting", "or an exception"),
        Box(380, 390, "capsmith", "Contract's shape", "v1beta1 or v1beta2"),
        Box(640, 390, "capsmith", "One patch", "status and conditions"),
    ),
    (
        Arrow("API server", "Cache and queue"),
        Arrow("Cache and queue", "Moved, paused?"),
        Arrow("Moved, paused?", "Finalizer", "no"),
        Arrow("Finalizer", "Wait"),
        Arrow("Wait", "Scope"),
        Arrow("Scope", "reconcile_normal", "call"),
        Arrow("reconcile_normal", "Your infrastructure", "look up"),
        Arrow("reconcile_normal", "State or Waiting", "return"),
        Arrow("State or Waiting", "Contract's shape"),
        Arrow("Contract's shape", "One patch"),
    ),
)
UPDATE = Picture(
    "update",
    "An update decides for each file by its owner, and writes all of them or none.",
    760,
    430,
    (
        Box(120, 60, "yours", "provider.yaml", "changed by you"),
        Box(380, 60, "capsmith", "Render and check", "in memory"),
        Box(640, 60, "capsmith", "Decide", "for each file"),
        Box(640, 180, "capsmith", "Generated", "replaced"),
        Box(380, 180, "capsmith", "Shared", "merged three ways"),
        Box(120, 180, "yours", "Scaffold", "new one if unedited"),
        Box(380, 290, "capsmith", "Journal", "undo or complete"),
        Box(380, 390, "cloud", "Repository", "old tree, or new tree"),
        Box(120, 290, "yours", "All other files", "unchanged"),
        Box(640, 290, "yours", "Edited generated file", "refused by name"),
    ),
    (
        Arrow("provider.yaml", "Render and check"),
        Arrow("Render and check", "Decide"),
        Arrow("Decide", "Generated"),
        Arrow("Decide", "Shared"),
        Arrow("Generated", "Edited generated file", "if edited", True),
        Arrow("Generated", "Journal"),
        Arrow("Shared", "Journal"),
        Arrow("Scaffold", "Journal"),
        Arrow("Journal", "Repository"),
    ),
)
PICTURES = (OWNERS, RECONCILE, UPDATE)


def svg(picture: Picture) -> str:
    """Return a picture as SVG, the same on every run."""
    boxes = {box.title: box for box in picture.boxes}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {picture.width} {picture.height}"'
        f' width="{picture.width}" height="{picture.height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="14">',
        f"<title>{escape(picture.title)}</title>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"'
        ' markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#455a64"/></marker>'
        "</defs>",
        f'<rect width="{picture.width}" height="{picture.height}" rx="8" fill="#fff"/>',
    ]
    for arrow in picture.arrows:
        lines += _arrow(arrow, boxes[arrow.start], boxes[arrow.end])
    for box in picture.boxes:
        lines += _box(box)
    lines += _legend(picture)
    return "\n".join([*lines, "</svg>", ""])


def _box(box: Box) -> Iterator[str]:
    fill, line = _COLORS[box.owner]
    left, top = box.x - _WIDTH // 2, box.y - _HEIGHT // 2
    yield (
        f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"'
        f' fill="{fill}" stroke="{line}"/>'
    )
    middle = box.y - 3 if box.note else box.y + 5
    text = f'<text x="{box.x}" text-anchor="middle"'
    yield f'{text} y="{middle}" fill="#212121">{escape(box.title.strip())}</text>'
    if box.note:
        yield f'{text} y="{box.y + 14}" fill="#555" font-size="12">{escape(box.note)}</text>'


def _arrow(arrow: Arrow, start: Box, end: Box) -> Iterator[str]:
    (x1, y1), (x2, y2) = _edge(start, end), _edge(end, start)
    dashed = ' stroke-dasharray="5 4"' if arrow.dashed else ""
    yield (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#455a64"'
        f' stroke-width="1.5" marker-end="url(#head)"{dashed}/>'
    )
    if arrow.label:
        x, y = (x1 + x2) // 2, (y1 + y2) // 2
        anchor, x, y = ("start", x + 8, y + 4) if x1 == x2 else ("middle", x, y - 7)
        text = f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#555" font-size="12">'
        yield f"{text}{escape(arrow.label)}</text>"


def _edge(box: Box, other: Box) -> tuple[int, int]:
    """Return where an arrow to the other box leaves this one."""
    if box.y == other.y:
        return box.x + (_WIDTH // 2 if other.x > box.x else -_WIDTH // 2), box.y
    return box.x, box.y + (_HEIGHT // 2 if other.y > box.y else -_HEIGHT // 2)


def _legend(picture: Picture) -> Iterator[str]:
    names = {"core": "Cluster API", "capsmith": "capsmith", "yours": "you", "cloud": "elsewhere"}
    shown = [each for each in names if any(box.owner == each for box in picture.boxes)]
    for index, owner in enumerate(shown):
        x, (fill, line) = 40 + 110 * index, _COLORS[owner]
        yield f'<rect x="{x}" y="10" width="12" height="12" fill="{fill}" stroke="{line}"/>'
        yield f'<text x="{x + 18}" y="20" fill="#555" font-size="12">{names[owner]}</text>'


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in PICTURES:
        (FOLDER / f"{each.name}.svg").write_text(svg(each), encoding="utf-8")
