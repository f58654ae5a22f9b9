"""Folders that configure plugins make kustomize download nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from tests.verify.releases import violations
from tests.verify.test_verify_source_trees import kustomize, refused, tree, write

__all__ = ["kustomize"]
pytestmark = pytest.mark.usefixtures("kustomize")


@pytest.fixture
def requests() -> Iterator[tuple[str, list[str]]]:
    """Return the address of a server on this computer, which no proxy hides, and its requests."""
    found: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.append(self.path)
            self.send_error(404)

        def log_message(self, *arguments: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/x", found
        server.shutdown()
        thread.join()


def plugin(kind: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": "builtin", "kind": kind, "metadata": {"name": "a"}, **parts}


def with_plugins(folder: Path, key: str, *configurations: dict[str, Any], **further: Any) -> Path:
    """Return a tree whose release has plugins in a folder; ``further`` is in its kustomization."""
    folder = tree(folder)
    write(folder / "plugins", {"resources": ["inner"]})
    write(folder / "plugins/inner", {"resources": ["all.yaml"], **further})
    (folder / "plugins/inner/all.yaml").write_text(yaml.safe_dump_all(configurations))
    write(folder / "default", {"resources": ["../crd"], key: ["../plugins"]})
    return folder


@pytest.mark.parametrize(
    ("key", "kind", "field"),
    [
        ("generators", "ConfigMapGenerator", "files"),
        ("generators", "SecretGenerator", "envs"),
        ("transformers", "PatchTransformer", "path"),
        ("validators", "PatchTransformer", "path"),
    ],
)
def test_an_address_in_a_folder_of_plugins(
    tmp_path: Path, requests: tuple[str, list[str]], key: str, kind: str, field: str
) -> None:
    address, found = requests
    value = address if field == "path" else [f"a={address}" if field == "files" else address]
    folder = with_plugins(tmp_path, key, plugin(kind, **{field: value}))
    assert refused(str(folder / "default")) == "verify-remote"
    assert refused(str(folder)) == "verify-remote"
    assert found == []


def test_plugins_that_a_patch_changes(tmp_path: Path, requests: tuple[str, list[str]]) -> None:
    address, found = requests
    patch = yaml.safe_dump(plugin("ConfigMapGenerator", files=[f"a={address}"]))
    configuration = plugin("ConfigMapGenerator", literals=["a=b"])
    folder = with_plugins(tmp_path, "generators", configuration, patches=[{"patch": patch}])
    assert refused(str(folder / "default")) == "verify-remote"
    assert found == []


def test_plugins_that_a_replacement_changes(
    tmp_path: Path, requests: tuple[str, list[str]]
) -> None:
    """No file contains the address."""
    address, found = requests
    target = {
        "select": {"kind": "PatchTransformer"},
        "fieldPaths": ["path"],
        "options": {"delimiter": "/", "index": 0},
    }
    source = {"kind": "ConfigMap", "name": "source", "fieldPath": "data.scheme"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source"}}
    folder = with_plugins(
        tmp_path,
        "transformers",
        plugin("PatchTransformer", path=address.replace("http:", "x")),
        {**config_map, "data": {"scheme": "http:"}},
        replacements=[{"source": source, "targets": [target]}],
    )
    assert refused(str(folder / "default")) == "verify-remote"
    assert found == []


def test_plugins_without_addresses_run(tmp_path: Path) -> None:
    value = {"op": "add", "path": "/metadata/labels/cluster.x-k8s.io~1v1beta2", "value": "v9"}
    target = {"kind": "CustomResourceDefinition"}
    patch = plugin("PatchTransformer", patch=yaml.safe_dump([value]), target=target)
    folder = with_plugins(tmp_path, "transformers", patch)
    assert "GEN-02" in [each["id"] for each in violations(str(folder / "default"))]


@pytest.mark.parametrize("key", ["resources", "generators", "patchesStrategicMerge"])
def test_a_pipe_is_not_opened(tmp_path: Path, key: str) -> None:
    folder = tree(tmp_path)
    os.mkfifo(folder / "default" / "pipe.yaml")
    write(folder / "default", {"resources": ["../crd"], key: ["pipe.yaml"]})
    assert refused(str(folder / "default")) == "verify-kustomize"


@pytest.mark.parametrize(
    "more",
    [
        {"configMapGenerator": [{"name": "a", "files": ["key=pipe.yaml"]}]},
        {"secretGenerator": [{"name": "a", "envs": ["pipe.yaml"]}]},
        {"configurations": ["pipe.yaml"]},
        {"crds": ["pipe.yaml"]},
        {"replacements": [{"path": "pipe.yaml"}]},
        {"openapi": {"path": "pipe.yaml"}},
        {"components": ["pipe"]},
    ],
)
def test_pipes_are_refused_wherever_a_kustomization_names_them(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    folder = tree(tmp_path)
    os.mkfifo(folder / "default" / "pipe.yaml")
    (folder / "default" / "pipe").mkdir()
    os.mkfifo(folder / "default" / "pipe" / "kustomization.yml")
    write(folder / "default", {"resources": ["../crd"], **more})
    assert refused(str(folder / "default")) == "verify-kustomize"


def multiply(folder: Path, depth: int, names: str) -> str:
    """Write kustomizations of which each names the next one by ``names``; return the first."""
    below = "../default"
    write(folder / "default", {"resources": ["../crd"]})
    for level in range(depth):
        parts = [f"level{level}-{name}" for name in names]
        for part in parts:
            (folder / part).mkdir()
            write(folder / part, {"namePrefix": f"{part}-", "resources": [below]})
        top = folder / f"level{level}"
        top.mkdir()
        write(top, {"resources": [f"../{part}" for part in parts]})
        below = f"../{top.name}"
    return str(top)


def test_kustomizations_that_multiply_are_refused_at_once(tmp_path: Path) -> None:
    assert refused(multiply(tree(tmp_path), 40, "ab")) == "verify-kustomize"


def test_a_chain_of_kustomizations_is_built(tmp_path: Path) -> None:
    violations(multiply(tree(tmp_path), 40, "a"))


@pytest.mark.parametrize("key", ["resources", "patchesStrategicMerge", "configurations"])
def test_a_file_that_contains_itself_is_not_built(tmp_path: Path, key: str) -> None:
    """kustomize would use all memory until its stack overflows."""
    folder = tree(tmp_path)
    (folder / "default" / "endless.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: &a\n  name: a\n  labels: *a\n"
    )
    write(folder / "default", {"resources": ["../crd"], key: ["endless.yaml"]})
    assert refused(str(folder / "default")) == "verify-kustomize"
