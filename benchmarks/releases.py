"""Release assets for the benchmark of verify, and the schemas of their kinds for its peers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from capsmith.judge.release.release import substitute
from capsmith.manifests.kustomize import build
from capsmith.manifests.parse import Manifest, parse_manifests, text_of
from tests.golden.cases import cases

_LABEL = "cluster.x-k8s.io/provider"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def generated(folder: Path, count: int) -> list[Path]:
    """Write releases of the generated examples by turns, each with kinds of its own."""
    trees = [each for each in cases() if _is_one_component(each.expected)]
    made = []
    for number in range(count):
        case, turn = trees[number % len(trees)], number // len(trees)
        release = folder / f"{number:02d}-{case.name}" / _newest_version(case.expected)
        release.mkdir(parents=True)
        for name, text in _assets(case.expected, _LETTERS[turn]):
            (release / name).write_text(text)
        made.append(release)
    return made


def _newest_version(tree: Path) -> str:
    """Return the first version of the newest series: the CRDs have the labels of its contract."""
    series = yaml.safe_load((tree / "metadata.yaml").read_text())["releaseSeries"]
    major, minor = max((each["major"], each["minor"]) for each in series)
    return f"v{major}.{minor}.0"


def _is_one_component(tree: Path) -> bool:
    config = tree / "config" / "default"
    return config.is_dir() and not (tree / "bootstrap").is_dir()


def _assets(tree: Path, letter: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the assets; ``letter`` makes the provider's names unique."""
    objects = _components(tree)
    namespace = next(each for each in objects if each.kind == "Namespace")
    label = text_of(namespace.document, "metadata", "labels", _LABEL)
    type, _, name = label.partition("-")
    if type == "control":
        type, name = "control-plane", name.removeprefix("plane-")
    components = yaml.dump_all(
        (dict(each.document) for each in objects), Dumper=yaml.CSafeDumper, sort_keys=False
    )
    files = [(f"{type}-components.yaml", components)]
    others = [tree / "metadata.yaml", *sorted((tree / "templates").glob("*.yaml"))]
    files += [(path.name, path.read_text()) for path in others if path.is_file()]
    for file, text in files:
        for word in (name, name.capitalize()):
            text = text.replace(word, word + letter)
        yield file.replace(name, name + letter), text


def _components(tree: Path) -> list[Manifest]:
    manifests = [
        manifest
        for path in sorted((tree / "config").rglob("*.yaml"))
        if "samples" not in path.parts
        for manifest in parse_manifests(path.read_text(), str(path.relative_to(tree)))[0]
    ]
    return [each for each in build(manifests) if each.kind not in ("Kustomization", "Component")]


def copied(source: Path, folder: Path) -> list[Path]:
    """Copy releases, one in each folder below ``source``, with sample values for variables."""
    made = []
    for release in sorted(path for path in source.iterdir() if path.is_dir()):
        copy = folder / release.name
        copy.mkdir(parents=True)
        for path in sorted(release.glob("*.yaml")):
            (copy / path.name).write_text(substitute(path.read_text(), alone="").text)
        made.append(copy)
    return made


def documents(releases: Sequence[Path]) -> Iterator[dict[str, object]]:
    """Yield the objects of all files that can be read; metadata.yaml is one as well."""
    for path in itertools.chain.from_iterable(sorted(each.iterdir()) for each in releases):
        try:
            found = list(yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader))
        except yaml.YAMLError:
            continue
        yield from (each for each in found if isinstance(each, dict))


def schemas(releases: Sequence[Path], folder: Path) -> None:
    """Write the schemas of the releases' own kinds under the names that kubeconform expects."""
    folder.mkdir(parents=True, exist_ok=True)
    for document in documents(releases):
        spec = document.get("spec")
        if document.get("kind") != "CustomResourceDefinition" or not isinstance(spec, dict):
            continue
        group, kind = spec["group"].partition(".")[0], spec["names"]["kind"].lower()
        for version in spec["versions"]:
            schema = version.get("schema", {}).get("openAPIV3Schema", {})
            name = f"{kind}-{group}-{version['name']}.json"
            (folder / name).write_text(json.dumps(schema))
