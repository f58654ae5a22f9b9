"""The blueprints as templates of cookiecutter and of copier, for one provider.

The blueprints stay as they are, with all their expressions; the peers get the same filters and the
same context objects (:mod:`benchmarks.extension`).  What capsmith does and they cannot is done for
them beforehand: which files there are, what they are called, and what each of them sees.  Files
without an expression are marked to be copied.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.extension import Blueprints
from capsmith import resources
from capsmith.blueprint.plan import load_manifest, plan_files
from capsmith.blueprint.render import is_static
from capsmith.commands.build import load_runtime_library
from capsmith.contract.load import Lazy
from capsmith.output.runtime import build_vendored_files, select_runtime
from capsmith.provider.model import Provider
from capsmith.workspace.reading import read_texts

_EXTENSION = f"{Blueprints.__module__}.{Blueprints.__qualname__}"
_BLOCKS = {"trim_blocks": True, "lstrip_blocks": True}
BLACK = "black --quiet --line-length 100 --target-version py311 ."


class _Pickler(pickle.Pickler):
    """Leaves out the texts of the contract's rules, which no blueprint uses."""

    def reducer_override(self, obj: Any) -> Any:
        return (dict, ()) if isinstance(obj, Lazy) else NotImplemented


@dataclass(frozen=True)
class Template:
    path: str
    text: str
    static: bool


@dataclass(frozen=True)
class Tree:
    """All files of the provider's repository, and the partials that they include."""

    files: tuple[Template, ...]
    partials: dict[str, str]


def make_tree(provider: Provider, contexts: Path) -> Tree:
    """The templates; what they see is written to ``contexts``."""
    sources = read_texts(resources.blueprints())
    seen, files = {}, []
    library = load_runtime_library()
    runtime = select_runtime(provider, library)
    entries = load_manifest(sources["manifest.yaml"], "manifest.yaml")
    for file in plan_files(entries, provider, runtime):
        text = sources[f"project/{file.entry.source}"]
        static = is_static(text)
        if not static:
            seen[str(file.path)] = dict(file.context)
            text = _names(str(file.path), list(file.context)) + text
        files.append(Template(str(file.path), text, static))
    files += [
        Template(str(file.path), file.text, True) for file in build_vendored_files(runtime, library)
    ]
    with contexts.open("wb") as output:
        _Pickler(output).dump(seen)
    partials = {path: text for path, text in sources.items() if path.startswith("macros/")}
    return Tree(tuple(files), partials)


def copy_tree(tree: Tree, folder: Path) -> Tree:
    """The files of a generated repository as templates that are only copied."""
    texts = [(each.path, (folder / each.path).read_text(encoding="utf-8")) for each in tree.files]
    return Tree(tuple(Template(path, text, True) for path, text in texts), {})


def _names(path: str, names: list[str]) -> str:
    return "".join(f"{{% set {name} = contexts[{path!r}][{name!r}] %}}" for name in names)


def write_cookiecutter(tree: Tree, folder: Path, *, formatted: bool) -> None:
    """A cookiecutter template; run it with ``--no-input``."""
    for template in tree.files:
        # Braces in a path would be an expression of cookiecutter's.
        assert "{" not in template.path
        _write(folder / "{{cookiecutter.name}}" / template.path, template.text)
    for path, text in tree.partials.items():
        _write(folder / "templates" / path, text)
    copied = [template.path for template in tree.files if template.static]
    context: dict[str, Any] = {"name": "repository", "_copy_without_render": copied}
    if len(copied) == len(tree.files):
        context["_copy_without_render"] = ["*"]
    else:
        context |= {"_extensions": [_EXTENSION], "_jinja2_env_vars": _BLOCKS}
    _write(folder / "cookiecutter.json", json.dumps(context))
    if formatted:
        _write(folder / "hooks" / "post_gen_project.sh", f"#!/bin/sh\nexec {BLACK}\n")


def write_copier(tree: Tree, folder: Path, *, formatted: bool) -> None:
    """A copier template; run it with ``--trust``."""
    for template in tree.files:
        suffix = "" if template.static else ".jinja"
        _write(folder / (template.path + suffix), template.text)
    for path, text in tree.partials.items():
        _write(folder / path, text)
    settings: dict[str, Any] = {
        "_templates_suffix": ".jinja",
        "_exclude": ["copier.yml", "macros"],
        "_tasks": [BLACK] if formatted else [],
    }
    if not all(template.static for template in tree.files):
        settings["_envops"] = {**_BLOCKS, "keep_trailing_newline": True}
        settings["_jinja_extensions"] = [_EXTENSION]
    _write(folder / "copier.yml", yaml.safe_dump(settings))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
