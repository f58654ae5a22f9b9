"""``capsmith doctor`` tells facts, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith import __version__
from tests.regenerate.conftest import ROOT, Change, Provider, Said, run

MODEL = "src/cluster_api_provider_acme/_generated/api/acme_machine.py"


def doctor(provider: Provider) -> Said:
    before = provider.tree()
    said = run("doctor", str(provider.folder), "--format", "json")
    assert provider.tree() == before
    return said


def test_a_healthy_provider(provider: Provider) -> None:
    said = doctor(provider)
    assert (said.code, said.ids) == (0, set())
    facts = said.report["facts"]
    assert facts["generator"]["here"] == facts["generator"]["generatedBy"]
    followed = {c["version"]: c["releases"] for c in facts["contracts"] if c["followed"]}
    assert followed == {"v1beta2": ["v0.1"]}
    assert facts["apiVersions"] == [{"name": "v1alpha1", "served": True, "storage": True}]
    assert facts["update"] == {}
    assert sum(facts["files"]["owners"].values()) == len(provider.update().report["files"])


def test_in_words(provider: Provider) -> None:
    provider.append("Makefile", "mine:\n")
    provider.update("--mine", "Makefile")
    lines = run("doctor", str(provider.folder)).text.splitlines()
    assert "API version v1alpha1: served, storage" in lines
    assert "taken over: Makefile" in lines
    assert lines[-1] == "next update: nothing to do"
    assert any(line.startswith("contract v1beta2: followed, v0.1; core v1.11") for line in lines)
    assert any(line.startswith("contract v1beta1: not followed; ") for line in lines)


def test_the_end_of_a_contract_is_reported_with_its_date(tmp_path: Path) -> None:
    spec = (ROOT / "examples/acme/provider.yaml").read_text().replace("v1beta2", "v1beta1")
    (tmp_path / "old").mkdir()
    (tmp_path / "old/provider.yaml").write_text(spec)
    assert run("generate", str(tmp_path / "old/provider.yaml")).code == 0
    said = doctor(Provider(tmp_path / "old"))
    (finding,) = said.report["findings"]
    assert (said.code, finding["id"], finding["severity"]) == (0, "contract-ends", "warning")
    (ends,) = (c["ends"] for c in said.report["facts"]["contracts"] if c["followed"])
    assert ends in finding["message"]
    both = ROOT / "examples/two-contracts/provider.yaml"
    assert run("generate", str(both), "-o", str(tmp_path / "both")).code == 0
    assert doctor(Provider(tmp_path / "both")).ids == set()


def test_what_the_next_update_would_do(provider: Provider, change_blueprint: Change) -> None:
    change_blueprint("project/Makefile.jinja", "DOCKER ?= docker\n", "DOCKER ?= podman\n")
    provider.edit("Makefile", "DOCKER ?= docker\n", "DOCKER ?= mine\n")
    provider.path(MODEL).unlink()
    said = doctor(provider)
    assert (said.code, said.ids) == (1, {"update-conflict"})
    facts = said.report["facts"]
    assert facts["update"] == {"created": 1, "conflicted": 1}
    assert facts["generator"] == {"here": "9.9.9", "generatedBy": __version__}
    provider.update()
    said = doctor(provider)
    assert (said.code, said.ids) == (1, {"update-unfinished"})
    assert said.report["facts"]["update"] is None


@pytest.mark.parametrize("folder", [".", "src"])
def test_where_nothing_was_generated(provider: Provider, folder: str) -> None:
    provider.path(".capsmith/lock.yaml").unlink()
    said = run("doctor", str(provider.path(folder)), "--format", "json")
    assert (said.code, said.ids) == (2, {"nothing-generated"})


def test_a_description_with_mistakes(provider: Provider) -> None:
    provider.edit("provider.yaml", "implements: InfraMachine", "implements: InfraMachin")
    said = doctor(provider)
    assert (said.code, said.ids) == (1, {"spec-not-one-of"})
    assert said.report["facts"]["update"] is None
