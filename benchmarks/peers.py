"""The blueprints as templates of cookiecutter and of copier, for one provider.

The peers get the lighter job: loops are unrolled, conditions decided and filters applied
beforehand, so that what is left is the same text with the same number of printed expressions,
whose values they read from their context.  Files without an expression are only copied.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from capsmith import resources
from capsmith.blueprint.environment import make_environment, refuse_unsafe
from capsmith.blueprint.manifest import load_manifest
from capsmith.blueprint.plan import plan
from capsmith.blueprint.render import is_static
from capsmith.provider.model import Provider
from capsmith.safetext import SafeText

_OPEN, _CLOSE = "\x02", "\x03"


@dataclass(frozen=True)
class Piece:
    """Text of a blueprint, or a value that one of its expressions printed."""

    text: str
    printed: bool


@dataclass(frozen=True)
class Template:
    path: str
    pieces: tuple[Piece, ...]

    @property
    def static(self) -> bool:
        return not any(piece.printed for piece in self.pieces)


def templates(provider: Provider) -> tuple[Template, ...]:
    """Every file of the provider's repository, as pieces, before formatting."""
    sources = resources.blueprint_texts()
    environment = make_environment(sources, None, "")
    environment.finalize = lambda value: SafeText(f"{_OPEN}{refuse_unsafe(value)}{_CLOSE}")
    made = []
    for file in plan(load_manifest(sources["manifest.yaml"], "manifest.yaml"), provider):
        name = f"project/{file.entry.source}"
        if is_static(sources[name]):
            made.append(Template(file.path, (Piece(sources[name], False),)))
        else:
            text = environment.get_template(name).render(file.context)
            made.append(Template(file.path, tuple(_pieces(text))))
    return tuple(made)


def _pieces(text: str) -> Iterator[Piece]:
    """Split at the marks; a value that a macro put together of values counts once."""
    depth, current = 0, ""
    for character in text:
        if character == _OPEN:
            if depth == 0 and current:
                yield Piece(current, False)
                current = ""
            depth += 1
        elif character == _CLOSE:
            depth -= 1
            if depth == 0:
                yield Piece(current, True)
                current = ""
        else:
            current += character
    if current:
        yield Piece(current, False)


def write_cookiecutter(made: tuple[Template, ...], folder: Path) -> None:
    """A cookiecutter template; run it with ``--no-input``."""
    values: dict[str, str] = {}
    root = folder / "{{cookiecutter.name}}"
    for template in made:
        # Braces in a path would be an expression of cookiecutter's.
        assert "{" not in template.path
        _write(root / template.path, _text(template, values, "cookiecutter._values.{}".format))
    context: Mapping[str, Any] = {
        "name": "repository",
        # Private, because cookiecutter compiles a template for every public value.
        "_values": values,
        "_copy_without_render": [template.path for template in made if template.static],
    }
    _write(folder / "cookiecutter.json", json.dumps(context))


def write_copier(made: tuple[Template, ...], folder: Path) -> Path:
    """A copier template in ``folder/template``; the file to give as ``--data-file``."""
    values: dict[str, str] = {}
    for template in made:
        suffix = "" if template.static else ".jinja"
        text = _text(template, values, "values.{}".format)
        _write(folder / "template" / (template.path + suffix), text)
    _write(folder / "template" / "copier.yml", "_templates_suffix: .jinja\n")
    data = folder / "data.yml"
    _write(data, yaml.dump({"values": values}, Dumper=yaml.CSafeDumper))
    return data


def _text(template: Template, values: dict[str, str], name: Callable[[str], str]) -> str:
    if template.static:
        return "".join(piece.text for piece in template.pieces)
    parts = []
    for piece in template.pieces:
        if piece.printed:
            key = f"v{len(values)}"
            values[key] = piece.text
            parts.append("{{ " + name(key) + " }}")
        elif any(mark in piece.text for mark in ("{{", "{%", "{#")):
            parts.append("{% raw %}" + piece.text + "{% endraw %}")
        else:
            parts.append(piece.text)
    return "".join(parts)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
