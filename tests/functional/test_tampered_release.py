"""What a release makes of a repository whose files were changed by hand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.functional.conftest import Repository
from tests.functional.test_release import newest
from tests.golden.cases import cases, generated


@pytest.fixture(scope="module", params=["acme", "complete"])
def original(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, scratch: Path
) -> Repository:
    """Return a repository with one component or with several."""
    (case,) = (each for each in cases() if each.name == request.param)
    folder = tmp_path_factory.mktemp(request.param) / "original"
    generated(case, folder)
    return Repository(folder, scratch)


class TestTampered:
    """A copy whose files were changed afterwards."""

    @pytest.fixture
    def copy(self, original: Repository, tmp_path: Path) -> Repository:
        folder = tmp_path / "copy"
        shutil.copytree(original.folder, folder)
        return replace(original, folder=folder)

    def build(self, copy: Repository) -> None:
        version, _ = newest(copy)
        copy.run("make", "release-manifests", f"VERSION={version}")

    def test_another_contract_in_the_metadata_is_refused(self, copy: Repository) -> None:
        """Proves: GEN-09."""
        path = copy.folder / "metadata.yaml"
        text = path.read_text(encoding="utf-8")
        swapped = {"v1beta1": "v1beta2", "v1beta2": "v1beta1"}
        path.write_text(
            re.sub(r"(?<=contract: )\S+", lambda found: swapped[found[0]], text), encoding="utf-8"
        )

        with pytest.raises(AssertionError, match="GEN-09"):
            self.build(copy)

    def test_a_second_namespace_is_refused(self, copy: Repository) -> None:
        """Proves: CC-22."""
        overlay = copy.folder / "config" / "overlay"
        second = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "second"}}
        (overlay / "second.yaml").write_text(yaml.safe_dump(second), encoding="utf-8")
        with (overlay / "kustomization.yaml").open("a", encoding="utf-8") as file:
            file.write("- second.yaml\n")

        with pytest.raises(AssertionError, match="CC-22"):
            self.build(copy)

    def test_dollars_in_a_crd_survive_clusterctl(self, copy: Repository) -> None:
        crd = min((copy.folder / "config" / "crd" / "bases").iterdir())
        manifest = yaml.safe_load(crd.read_text(encoding="utf-8"))
        versions = manifest["spec"]["versions"]
        versions[0]["schema"]["openAPIV3Schema"]["description"] = "costs ${5} or $$, at $1"
        crd.write_text(yaml.safe_dump(manifest), encoding="utf-8")

        self.build(copy)

        text = (copy.folder / "out" / "infrastructure-components.yaml").read_text(encoding="utf-8")
        assert "costs $${5} or $$$$, at $1" in text

    def test_what_the_last_release_left_is_removed(self, copy: Repository) -> None:
        out = copy.folder / "out"
        out.mkdir()
        (out / "cluster-template-old.yaml").write_text("old", encoding="utf-8")
        (out / "notes.md").write_text("mine", encoding="utf-8")

        self.build(copy)

        assert not (out / "cluster-template-old.yaml").exists()
        assert (out / "notes.md").exists()
        assert not list(copy.folder.glob(".release-*"))

    @pytest.mark.parametrize("out", [".", "templates"])
    def test_sources_are_never_taken_for_an_old_release(self, copy: Repository, out: str) -> None:
        before = sorted(copy.files("*.yaml"))
        version, _ = newest(copy)
        with pytest.raises(AssertionError, match="holds sources"):
            copy.run("make", "release-manifests", f"VERSION={version}", f"OUT={out}")
        assert sorted(copy.files("*.yaml")) == before

    def test_files_of_others_beside_a_release_stay(self, copy: Repository) -> None:
        out = copy.folder / "out"
        out.mkdir()
        (out / "values.yaml").write_text("mine", encoding="utf-8")
        self.build(copy)
        assert (out / "values.yaml").read_text(encoding="utf-8") == "mine"

    def refusal(self, copy: Repository) -> str:
        with pytest.raises(AssertionError) as caught:
            self.build(copy)
        return str(caught.value)

    def test_a_template_of_a_kind_that_is_gone_is_refused(self, copy: Repository) -> None:
        template = copy.folder / "templates" / "cluster-template.yaml"
        text = re.sub(r"kind: (\w+)MachineTemplate", r"kind: \1BoxTemplate", template.read_text())
        template.write_text(text, encoding="utf-8")
        said = self.refusal(copy)
        line = text[: text.index("BoxTemplate\nmetadata")].count("\n")
        assert re.search(
            rf"templates/cluster-template\.yaml:{line}: \w+BoxTemplate is not a kind of", said
        )

    def test_a_template_in_a_version_that_is_not_served_is_refused(self, copy: Repository) -> None:
        template = copy.folder / "templates" / "cluster-template.yaml"
        old = re.compile(r"(?m)^(apiVersion: infrastructure\.\S+/)\w+$")
        text, number = old.subn(r"\1v1alpha0", template.read_text(encoding="utf-8"))
        template.write_text(text, encoding="utf-8")
        said = self.refusal(copy)
        refused = r"templates/cluster-template\.yaml:\d+: \w+ is not served in v1alpha0"
        assert len(re.findall(refused, said)) == number > 0

    @pytest.mark.parametrize("folder", ["templates", "config/samples"])
    def test_an_object_that_the_crd_refuses_is_refused(self, copy: Repository, folder: str) -> None:
        file = next(
            path
            for path in sorted((copy.folder / folder).glob("*.yaml"))
            if re.search(r"(?m)^kind: \w+MachineTemplate$", path.read_text(encoding="utf-8"))
        )
        text = file.read_text(encoding="utf-8").replace("    spec:\n", "    spec:\n      odd: 1\n")
        file.write_text(text, encoding="utf-8")
        said = self.refusal(copy)
        assert re.search(
            rf"{folder}/{file.name}:\d+: \w+Template\.spec\.template\.spec\.odd: ", said
        )

    def test_a_tag_is_data_for_make_and_the_shell(self, copy: Repository) -> None:
        tag = "v1$(shell touch made)`touch ran`;touch run;\"'"
        done = subprocess.run(
            ["make", "check-version", f"PYTHON={sys.executable}"],
            cwd=copy.folder,
            env={**os.environ, "VERSION": tag},
            capture_output=True,
            text=True,
        )
        assert done.returncode != 0
        assert repr(tag) in done.stderr
        assert not [name for name in ("made", "ran", "run") if (copy.folder / name).exists()]
