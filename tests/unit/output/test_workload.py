"""Clients of workload clusters: who may switch them on, and what a repository then carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith.commands.build import load_runtime_library
from capsmith.commands.load import load
from capsmith.output.runtime import select_runtime

ACME = (Path(__file__).parents[3] / "examples" / "acme" / "provider.yaml").read_text()
FEATURE = "features: {workloadClient: true}"


@pytest.mark.parametrize(
    ("kind", "is_on"), [("AcmeMachine", True), ("AcmeCluster", True), ("", False)]
)
def test_the_library_has_clients_of_workload_clusters_if_a_kind_needs_them(
    tmp_path: Path, kind: str, is_on: bool
) -> None:
    file = tmp_path / "provider.yaml"
    file.write_text(ACME.replace(f"  {kind}:\n", f"  {kind}:\n    {FEATURE}\n") if kind else ACME)
    provider = load(file).provider
    assert provider is not None

    runtime = select_runtime(provider, load_runtime_library())

    assert ("workload" in runtime.slices) is is_on
    (component,) = provider.components
    kinds = {each.kind for each in component.resources if "workloadClient" in each.features}
    assert kinds == ({kind, f"{kind}Template"} if is_on else set())


def test_other_roles_have_no_such_feature(tmp_path: Path) -> None:
    file = tmp_path / "provider.yaml"
    pool = f"ipam:\n  AcmePool:\n    implements: IPPool\n    {FEATURE}\n"
    file.write_text(ACME + pool)

    assert [finding.id for finding in load(file).findings] == ["feature-unknown"]
