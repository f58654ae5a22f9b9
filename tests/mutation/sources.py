"""Valid releases: what capsmith generates as release assets, and the good cases of each rule."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

from capsmith.judge.release.release import ReleaseFiles, SourceFile, read_release
from capsmith.manifests.bundle import Artefact, Bundle, split
from capsmith.manifests.kustomize import build
from tests.golden.cases import cases
from tests.rules.cases import ROOT

_LABEL = "cluster.x-k8s.io/provider"
_BESIDE = (Artefact.METADATA, Artefact.CLUSTER_TEMPLATE, Artefact.CLUSTER_CLASS)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@cache
def generated() -> dict[str, ReleaseFiles]:
    """Return the release of each golden tree by its name."""
    return {case.name: _release(case.expected) for case in cases() if case.expected.is_dir()}


@cache
def good(rule: str, label: str) -> dict[str, ReleaseFiles]:
    """Return what keeps one rule, labelled with a contract, for kinds that no golden tree has."""
    folders = sorted((ROOT / rule).rglob("good"))
    return {folder.relative_to(ROOT).as_posix(): _good(folder, label) for folder in folders}


def _good(folder: Path, label: str) -> ReleaseFiles:
    files = sorted(folder.rglob("*.yaml"))
    release = read_release(
        SourceFile(file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8"))
        for file in files
    )
    crds = (m for m in release.manifests if m.kind == "CustomResourceDefinition")
    for crd in crds:
        versions = crd.document["spec"].get("versions", [])
        served = "_".join(each["name"] for each in versions if each.get("served"))
        labels = crd.document["metadata"].setdefault("labels", {})
        for key in [key for key in labels if key.startswith("cluster.x-k8s.io/v1")]:
            del labels[key]
        labels[label] = served
    return release


def _release(tree: Path) -> ReleaseFiles:
    source = read_release(
        SourceFile(file.relative_to(tree).as_posix(), file.read_text(encoding="utf-8"))
        for file in sorted(tree.rglob("*.yaml"))
        if not any(part.startswith(".") for part in file.relative_to(tree).parts)
    )
    files: dict[str, str] = {}
    for bundle in split(build(source.manifests), {}):
        if bundle.objects:
            files.update(_assets(bundle))
    return read_release(SourceFile(name, text) for name, text in files.items())


def _assets(bundle: Bundle) -> Iterator[tuple[str, str]]:
    name = bundle.objects[0].document["metadata"]["labels"][_LABEL]
    kind = next(k for k in _TYPES if name.startswith(k))
    folder = f"{name}/v0.1.0"
    documents = [dict(manifest.document) for manifest in bundle.objects]
    text = yaml.dump_all(documents, Dumper=_DUMPER, sort_keys=False)
    yield f"{folder}/{kind}-components.yaml", text
    for artefact in _BESIDE:
        for manifest in bundle.files(artefact):
            yield f"{folder}/{manifest.base_name}", manifest.text


_TYPES = ("infrastructure", "bootstrap", "control-plane", "ipam", "runtime-extension", "addon")
