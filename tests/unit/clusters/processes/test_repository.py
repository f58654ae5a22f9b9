"""A local clusterctl repository: what it reads is limited."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from capsmith.clusters.processes.errors import ToolsUnavailable
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.repository import ClusterctlRepository, dump, load
from capsmith.clusters.processes.tools import Toolbox
from capsmith.manifests.parse import parse_manifests

_CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def test_documents_of_a_stream() -> None:
    assert [each["kind"] for each in load(f"{_CONFIG}---\n---\n{_CONFIG}")] == ["ConfigMap"] * 2


@pytest.mark.parametrize("text", ["y", "N", "1e3", "08", "0o17", "12:30", "2026-01-02", "<<"])
def test_strings_stay_strings_for_clusterctl(text: str) -> None:
    (manifest,), findings = parse_manifests(dump([{"a": text, text: "b"}]), "a.yaml")
    assert (manifest.document, findings) == ({"a": text, text: "b"}, ())


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "a: [", "a: !!timestamp now"])
def test_damaged_components_of_core_are_reported(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "capi"
    folder.mkdir()
    (folder / "core-components.yaml").write_text(_CONFIG + "---\n" + text)
    (folder / "metadata.yaml").write_text("releaseSeries: []\n")
    repository = ClusterctlRepository(tmp_path / "repository")

    with pytest.raises(ToolsUnavailable, match=r"core-components\.yaml cannot be read") as raised:
        repository.add_core(Toolbox({"capi-v1.10": folder}), "v1.10", cast("Pki", None))

    assert str(folder) in raised.value.finding.hint
