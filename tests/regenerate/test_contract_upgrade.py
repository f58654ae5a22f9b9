"""update --contract and --drop-api-version: what is written, reported and refused."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.regenerate.conftest import ROOT, Provider, Said, run

OLD = (ROOT / "examples/acme/provider.yaml").read_text().replace("v1beta2", "v1beta1")
BOTH = ("--contract", "v1beta1,v1beta2")
NEW = ("--contract", "v1beta2")
KEEP = (*NEW, "--keep-api-version")
DROP = ("--drop-api-version", "v1alpha1")
PYPROJECT = "pyproject.toml"
WORKFLOW = ".github/workflows/ci.yaml"


@pytest.fixture(scope="module")
def generated_old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old") / "acme"
    folder.mkdir()
    (folder / "provider.yaml").write_text(OLD)
    assert run("generate", str(folder / "provider.yaml")).code == 0
    return folder


@pytest.fixture
def old(generated_old: Path, tmp_path: Path) -> Provider:
    return Provider(Path(shutil.copytree(generated_old, tmp_path / "acme")))


def spec(provider: Provider) -> dict[str, Any]:
    data = yaml.safe_load(provider.path("provider.yaml").read_bytes())
    return {key: data[key] for key in ("contracts", "apiVersions", "releases") if key in data}


def crd(provider: Provider) -> dict[str, Any]:
    path = "config/crd/bases/infrastructure.cluster.x-k8s.io_acmemachines.yaml"
    return dict(yaml.safe_load(provider.path(path).read_text()))


def upgraded(provider: Provider, *arguments: str) -> dict[str, Any]:
    """Run a command that succeeds and leaves nothing to do, and return the plan that it reports."""
    said = provider.update(*arguments)
    assert said.code == 0, said.text
    assert provider.update("--check").code == 0
    return dict(said.report["facts"]["upgrade"])


def test_in_stages(old: Provider) -> None:
    """Proves: GEN-01, GEN-06, GEN-08, CC-08, CC-09."""
    plan = upgraded(old, *BOTH)
    assert spec(old) == {
        "contracts": ["v1beta1", "v1beta2"],
        "apiVersions": [
            {"name": "v1alpha1", "contract": "v1beta1"},
            {"name": "v1alpha2", "contract": "v1beta2", "storage": True},
        ],
        "releases": {"v0.1": "v1beta1", "v0.2": "v1beta2"},
    }
    assert plan["next"] == "capsmith update --contract v1beta2"
    assert labels(old) == {"v1beta1": "v1alpha1", "v1beta2": "v1alpha2"}
    plan = upgraded(old, *NEW)
    assert spec(old)["apiVersions"][0] == {
        "name": "v1alpha1",
        "contract": "v1beta1",
        "served": False,
    }
    assert labels(old) == {"v1beta1": "", "v1beta2": "v1alpha2"}
    assert [v["served"] for v in crd(old)["spec"]["versions"]] == [False, True]
    assert crd(old)["spec"]["conversion"]["strategy"] == "Webhook"
    assert plan["next"] == "capsmith update --drop-api-version v1alpha1"
    plan = upgraded(old, *DROP)
    assert [v["name"] for v in crd(old)["spec"]["versions"]] == ["v1alpha2"]
    # It stays named: clusterctl could not take it away, but it is no longer called.
    assert crd(old)["spec"]["conversion"]["strategy"] == "Webhook"
    assert plan["next"] == ""
    assert all(stage["done"] for stage in plan["stages"])
    series = {f"v0.{n}": f"v1beta{min(n, 2)}" for n in range(1, 5)}
    assert spec(old)["releases"] == series
    metadata = yaml.safe_load(old.path("metadata.yaml").read_text())
    assert {
        f"v{s['major']}.{s['minor']}": s["contract"] for s in metadata["releaseSeries"]
    } == series


def labels(provider: Provider) -> dict[str, str]:
    """Return the API versions by contract; empty for a former contract, so that it is cleared."""
    prefix = "cluster.x-k8s.io/v"
    found = crd(provider)["metadata"]["labels"]
    return {k[len(prefix) - 1 :]: v for k, v in found.items() if k.startswith(prefix)}


def test_in_place(old: Provider) -> None:
    """Proves: GEN-06."""
    plan = upgraded(old, *KEEP)
    assert spec(old) == {
        "contracts": ["v1beta2"],
        "releases": {"v0.1": "v1beta1", "v0.2": "v1beta2"},
    }
    assert labels(old) == {"v1beta1": "", "v1beta2": "v1alpha1"}
    assert plan["stages"] == []
    assert any("spec.failureDomain" in cost for cost in plan["costs"])
    assert old.path("docs/upgrading.md").exists()


def test_the_rest_of_provider_yaml_stays(old: Provider) -> None:
    text = old.path("provider.yaml").read_text()
    edited = "\ufeff" + text.replace("contracts: [v1beta1]", "contracts:  # mine\n  - 'v1beta1'")
    old.path("provider.yaml").write_bytes(edited.replace("\n", "\r\n").encode())
    old.path("provider.yaml").chmod(0o640)
    upgraded(old, *BOTH, "--api-version", "v1beta1", "--release", "v1.0")
    after = old.path("provider.yaml").read_bytes().decode()
    assert old.path("provider.yaml").stat().st_mode & 0o777 == 0o640
    assert after.replace("\r\n", "\n") == edited.replace(
        "  - 'v1beta1'\n",
        "  - 'v1beta1'\n  - 'v1beta2'\napiVersions:\n  - {name: v1alpha1, contract: v1beta1}\n"
        "  - {name: v1beta1, contract: v1beta2, storage: true}\n",
    ).replace("{v0.1: v1beta1}", "{v0.1: v1beta1, v1.0: v1beta2}")
    assert after.count("\n") == after.count("\r\n")


def test_looking_writes_nothing(old: Provider) -> None:
    before = old.tree()
    for look in ("--dry-run", "--diff"):
        said = old.update(*BOTH, look)
        assert said.code == 0
        assert "provider.yaml" in said.files("updated")
        assert said.report["facts"]["upgrade"]["stages"][0]["done"]
    (diff,) = (f["diff"] for f in said.report["files"] if f["path"] == "provider.yaml")
    assert "+contracts: [v1beta1, v1beta2]\n" in diff
    assert old.tree() == before


def test_a_request_that_changes_nothing_is_an_ordinary_update(old: Provider) -> None:
    old.append("provider.yaml", "title: Another\n")
    before = old.path("provider.yaml").read_bytes()
    said = old.update("--contract", "v1beta1")
    assert said.code == 0
    assert PYPROJECT not in said.files("unchanged") | said.files("created")
    assert said.files("updated")
    assert old.path("provider.yaml").read_bytes() == before
    for wish in (BOTH, NEW):
        upgraded(old, *wish)
        before = old.path("provider.yaml").read_bytes()
        assert old.update(*wish).code == 0
        assert old.path("provider.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("stages", "wish", "id", "line"),
    [
        ((), ("--contract", "v1beta9"), "contract-unknown", 5),
        ((), NEW, "contract-stage-skipped", 5),
        ((), (*BOTH, "--keep-api-version"), "keep-api-version", 5),
        ((BOTH,), KEEP, "keep-api-version", 5),
        ((BOTH,), ("--contract", "v1beta1"), "contract-backwards", 5),
        ((KEEP,), BOTH, "contract-backwards", 5),
        ((), (*BOTH, "--api-version", "v1alpha1"), "api-version-exists", 5),
        ((), (*BOTH, "--api-version", "one"), "spec-not-an-api-version", 5),
        ((BOTH,), (*NEW, "--api-version", "v2"), "api-version-unused", 7),
        ((), (*BOTH, "--release", "v0.1"), "CC-09", 6),
        ((), (*BOTH, "--release", "v0.0"), "release-order", 6),
        ((), (*BOTH, "--release", "0.2"), "CC-05", 6),
        ((), ("--drop-api-version", "v1beta7"), "drop-unknown", 5),
        ((), DROP, "drop-stored", 5),
        ((BOTH,), DROP, "drop-served", 7),
        ((BOTH, NEW), ("--drop-api-version", "v1alpha2"), "drop-stored", 8),
    ],
)
def test_impossible_requests_are_refused(
    old: Provider, stages: tuple[tuple[str, ...], ...], wish: tuple[str, ...], id: str, line: int
) -> None:
    for stage in stages:
        upgraded(old, *stage)
    before = old.tree()
    said = old.update(*wish)
    (finding,) = said.report["findings"]
    assert (said.code, finding["id"], finding["line"]) == (1, id, line)
    assert finding["hint"]
    assert finding["file"] == str(old.path("provider.yaml"))
    assert said.report["facts"] == {"upgrade": None}
    assert old.tree() == before


@pytest.mark.parametrize(
    "wish",
    [
        (*BOTH, "--check"),
        (*BOTH, "--continue"),
        (*BOTH, "--abort"),
        (*BOTH, *DROP),
        ("--api-version", "v2"),
        ("--release", "v0.2"),
        ("--keep-api-version",),
        (*KEEP, "--api-version", "v2"),
        ("--contract", ","),
        ("--contract", ""),
    ],
)
def test_options_that_do_not_go_together(old: Provider, wish: tuple[str, ...]) -> None:
    before = old.tree()
    assert run("update", str(old.folder), *wish).code == 2
    assert old.tree() == before


def test_a_description_that_cannot_be_edited_is_left_alone(old: Provider) -> None:
    text = old.path("provider.yaml").read_text()
    aliased = text.replace("[v1beta1]", "[&old v1beta1]").replace("{v0.1: v1beta1}", "{v0.1: *old}")
    old.path("provider.yaml").write_text(aliased)
    assert old.update().code == 0
    before = old.tree()
    said = old.update(*KEEP)
    assert (said.code, said.ids) == (1, {"spec-not-editable"})
    assert old.tree() == before


def test_a_description_with_mistakes(old: Provider) -> None:
    old.edit("provider.yaml", "implements: InfraMachine\n", "implements: InfraMachin\n")
    before = old.tree()
    assert old.update(*BOTH).ids == {"spec-not-one-of"}
    assert old.tree() == before


def conflict(provider: Provider) -> Said:
    """Return the result of an upgrade that conflicts with an edit of the author."""
    provider.edit(WORKFLOW, "VERSION=v0.1.0\n", "VERSION=v0.1.0  # mine\n")
    return provider.update(*BOTH)


def test_back_from_conflicts(old: Provider) -> None:
    text = old.path("provider.yaml").read_bytes()
    said = conflict(old)
    assert (said.code, said.files("conflicted")) == (1, {WORKFLOW})
    assert said.report["facts"]["upgrade"]["stages"][0]["done"]
    assert spec(old)["contracts"] == ["v1beta1", "v1beta2"]
    assert old.update(*NEW).ids == {"update-unfinished"}
    assert "provider.yaml" in old.update("--abort").files("updated")
    assert old.path("provider.yaml").read_bytes() == text
    assert old.update("--check").code == 0


def test_on_from_conflicts(old: Provider) -> None:
    conflict(old)
    text = old.path(WORKFLOW).read_text()
    theirs = re.sub(r"<<<<<<< .*?=======\n(.*?)>>>>>>> [^\n]*\n", r"\1", text, flags=re.DOTALL)
    old.path(WORKFLOW).write_text(f"# mine\n{theirs}")
    assert old.update("--continue").code == 0
    assert old.update("--check").code == 0
    assert old.path(WORKFLOW).read_text().startswith("# mine\n")
    upgraded(old, *NEW)


def test_the_authors_version_number_is_theirs(old: Provider) -> None:
    line = 'dynamic = ["version"] # the tag of the release, or the newest one\n'
    old.edit(PYPROJECT, line, 'version = "7.0.0"\n')
    for stage in (BOTH, NEW):
        upgraded(old, *stage)
    assert 'version = "7.0.0"\n' in old.path(PYPROJECT).read_text()


def test_an_edited_generated_file_stops_it_whole(old: Provider) -> None:
    old.append("metadata.yaml", "# mine\n")
    before = old.tree()
    said = old.update(*BOTH)
    assert (said.code, said.findings) == (1, {"metadata.yaml": "output-edited"})
    assert old.tree() == before
    assert old.update(*BOTH, "--force").code == 0


def test_the_simpler_way_is_reported(old: Provider) -> None:
    facts = run("doctor", str(old.folder), "--format", "json").report["facts"]["upgrade"]
    assert facts["next"] == "capsmith update --contract v1beta1,v1beta2"
    assert facts["simpler"]["command"] == "capsmith update --contract v1beta2 --keep-api-version"
    assert [stage["release"] for stage in facts["stages"]] == ["v0.2", "v0.3", "v0.4"]
    words = run("doctor", str(old.folder)).text
    assert f"next stage: {facts['next']}\n" in words
    text = run("update", str(old.folder), *BOTH).text
    assert "[x] v0.2: both contracts\n" in text
    assert "[ ] v0.3: v1beta2 only (capsmith update --contract v1beta2)\n" in text
    assert "AcmeMachine: status.ready -> status.initialization.provisioned" in text
    assert "src/cluster_api_provider_acme/controllers/acme_machine.py\n" in text
    assert text.endswith("next, once that is released: capsmith update --contract v1beta2\n")
