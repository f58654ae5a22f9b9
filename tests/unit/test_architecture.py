"""docs/architecture.md: what it names exists, and its walk is the way that generate takes."""

from __future__ import annotations

import graphlib
import re
import sys
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import grimp
import pytest

from capsmith.blueprint.plan import load_manifest
from capsmith.commands.build import build
from capsmith.commands.generate import generate
from capsmith.commands.load import load, load_contract_data

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ACME = ROOT / "examples" / "acme" / "provider.yaml"
DEMO = "build/acme/"
"""Where ``./dev demo`` generates; ``build/`` itself is not in the repository."""

NAMES = sorted(set(re.findall(r"`(capsmith(?:_runtime)?(?:\.\w+)+)`", PAGE)))
PATHS = sorted(
    set(re.findall(r"`((?:\w[\w.-]*/)+[\w.-]*)`", PAGE))
    | set(re.findall(r"^ ((?:\w[\w.-]*/){2,})", PAGE, re.MULTILINE))
)


def resolve(name: str) -> Any:
    """Return the object of a dotted name; raises ImportError or AttributeError."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute)
        return found
    raise ImportError(name)


@pytest.mark.parametrize("name", NAMES)
def test_names_exist(name: str) -> None:
    assert resolve(name) is not None


@pytest.mark.parametrize("path", [path for path in PATHS if not path.startswith(DEMO)])
def test_paths_exist(path: str) -> None:
    below = ("", "runtime/src/capsmith_runtime/contract/")
    assert any((ROOT / folder / path).exists() for folder in below)


def test_generated_paths_exist() -> None:
    paths = [path.removeprefix(DEMO) for path in PATHS if path.startswith(DEMO)]
    provider = load(ACME).provider
    assert provider is not None
    generated = [str(file.path) for file in build(provider)]
    assert len(paths) >= 4
    for path in paths:
        assert any(
            each == path or (path[-1] == "/" and each.startswith(path)) for each in generated
        )


def test_the_followed_line_is_in_the_files_named() -> None:
    (line,) = re.findall(r"^(diskGiB: .*)$", PAGE, re.MULTILINE)
    assert line in ACME.read_text(encoding="utf-8")
    provider = load(ACME).provider
    assert provider is not None
    tree = build(provider)
    (attribute,) = re.findall(r"`diskGiB` is `(disk.*?)`", PAGE)
    assert attribute in tree["src/cluster_api_provider_acme/_generated/api/acme_machine.py"].text
    folder = "config/crd/bases/infrastructure.cluster.x-k8s.io_"
    for path in (
        f"{folder}acmemachines.yaml",
        f"{folder}acmemachinetemplates.yaml",
        "docs/reference.md",
    ):
        assert "diskGiB" in tree[path].text


def test_the_walk_is_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # With a cache conformance would be skipped for a tree that was checked before.
    monkeypatch.setenv("CAPSMITH_CACHE", "")
    for cached in (load_contract_data, load_manifest):  # which an earlier test has called
        cached.cache_clear()
    walk = re.findall(r"^\|[^|]*\| `(capsmith\.[\w.]+)` \|", PAGE, re.MULTILINE)
    assert len(walk) > 20
    calls: dict[str, int] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"
            calls.setdefault(name, len(calls))

    former = sys.getprofile()
    sys.setprofile(note)
    try:
        generate(ACME, tmp_path / "acme")
    finally:
        sys.setprofile(former)
    assert sorted(walk, key=calls.__getitem__) == walk


@pytest.mark.parametrize("package", ["capsmith", "capsmith_runtime"])
def test_no_module_needs_itself(package: str) -> None:
    """Also not by an import for type checks, or inside a function."""
    graph = grimp.build_graph(package, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    graphlib.TopologicalSorter(imports).prepare()
