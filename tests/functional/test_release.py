"""What `make release-manifests` writes, and what the release guard refuses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith import resources
from capsmith.conformance.evaluate import evaluate_manifests
from capsmith.conformance.manifests import parse_manifests
from capsmith.contract.load import load_contract
from capsmith.findings import Severity
from tests.functional.conftest import Repository
from tests.golden.cases import cases, generated

TYPES = {
    "infrastructure": "infrastructure",
    "bootstrap": "bootstrap",
    "controlPlane": "control-plane",
    "ipam": "ipam",
    "runtimeExtension": "runtime-extension",
    "addon": "addon",
}
VARIABLE = re.compile(r"(?<!\$)\$\{([A-Z_]+):=([^}]*)\}")


def newest(repository: Repository) -> tuple[str, str]:
    """Version of a release of the newest series, and its contract."""
    metadata = yaml.safe_load((repository.folder / "metadata.yaml").read_text(encoding="utf-8"))
    series = max(metadata["releaseSeries"], key=lambda s: (s["major"], s["minor"]))
    return f"v{series['major']}.{series['minor']}.3", series["contract"]


@pytest.fixture(scope="session")
def released(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a release; no test writes to them."""
    version, _ = newest(repository)
    out = tmp_path_factory.mktemp("released")
    repository.run("make", "release-manifests", f"VERSION={version}", f"OUT={out}")
    return out


def components(released: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The type of each component and its objects."""
    for path in sorted(released.glob("*-components.yaml")):
        text = VARIABLE.sub(r"\2", path.read_text(encoding="utf-8"))
        yield path.name.removesuffix("-components.yaml"), list(yaml.safe_load_all(text))


def deployments(released: Path) -> list[tuple[str, dict[str, Any]]]:
    """The one Deployment of each component."""
    found = []
    for type, objects in components(released):
        (deployment,) = of_kind(objects, "Deployment")
        found.append((type, deployment))
    assert found
    return found


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in objects if each["kind"] == kind]


def test_a_release_holds_what_clusterctl_asks_for(repository: Repository, released: Path) -> None:
    """Proves: CC-53."""
    templates = {path.name for path in repository.folder.glob("templates/*")}
    described = yaml.safe_load((repository.folder / "provider.yaml").read_text(encoding="utf-8"))
    parts = {f"{TYPES[key]}-components.yaml" for key in described if key in TYPES}

    assert parts
    assert {path.name for path in released.iterdir()} == {*parts, "metadata.yaml", *templates}
    assert ("cluster-template.yaml" in templates) == ("infrastructure" in described)


def test_every_series_of_the_description_is_in_the_metadata(
    repository: Repository, released: Path
) -> None:
    """Proves: CC-08."""
    metadata = yaml.safe_load((released / "metadata.yaml").read_text(encoding="utf-8"))
    series = {f"v{s['major']}.{s['minor']}": s["contract"] for s in metadata["releaseSeries"]}
    described = yaml.safe_load((repository.folder / "provider.yaml").read_text(encoding="utf-8"))

    assert series == described["releases"]


def test_the_image_is_that_of_the_release(repository: Repository, released: Path) -> None:
    """Proves: CC-28."""
    for _, deployment in deployments(released):
        (container,) = deployment["spec"]["template"]["spec"]["containers"]

        assert container["name"] == "manager"
        assert container["image"].endswith(f":{newest(repository)[0]}")


def test_cluster_scoped_names_begin_with_the_namespace(released: Path) -> None:
    """Proves: CC-31."""
    kinds = {
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    for _, objects in components(released):
        (namespace,) = (each["metadata"]["name"] for each in of_kind(objects, "Namespace"))
        names = [each["metadata"]["name"] for each in objects if each["kind"] in kinds]

        assert len(names) >= 2
        assert all(name.startswith(f"{namespace}-") for name in names)


def test_references_follow_the_names(released: Path) -> None:
    for _, objects in components(released):
        there = {(each["kind"], each["metadata"]["name"]) for each in objects}
        bindings = of_kind(objects, "RoleBinding") + of_kind(objects, "ClusterRoleBinding")

        for binding in bindings:
            assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in there
            assert ("ServiceAccount", binding["subjects"][0]["name"]) in there
        for binding in of_kind(objects, "ValidatingAdmissionPolicyBinding"):
            assert ("ValidatingAdmissionPolicy", binding["spec"]["policyName"]) in there
        (deployment,) = of_kind(objects, "Deployment")
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        assert ("ServiceAccount", account) in there


def test_selectors_carry_the_provider_label(released: Path) -> None:
    """Proves: CC-26."""
    for _, deployment in deployments(released):
        label = deployment["metadata"]["labels"]["cluster.x-k8s.io/provider"]

        assert deployment["spec"]["selector"]["matchLabels"]["cluster.x-k8s.io/provider"] == label


def test_the_arguments_are_flags_of_the_manager(repository: Repository, released: Path) -> None:
    everything = deployments(released)
    types = [type for type, _ in everything]
    code = (
        f"from {repository.package}._generated.flags import parse; import sys;"
        f"print(parse(sys.argv[1:], {types}))"
    )
    for type, deployment in everything:
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]

        output = repository.python("-c", code, *arguments)

        assert f"component='{type}'" in output
        assert ("leader_elect=True" in output) == ("--leader-elect" in arguments)


def test_a_class_file_knows_no_variables(released: Path) -> None:
    """Proves: CC-74."""
    for path in released.glob("clusterclass-*.yaml"):
        assert "${" not in path.read_text(encoding="utf-8"), path.name


def test_a_release_breaks_no_rule(repository: Repository, released: Path) -> None:
    contract = load_contract(newest(repository)[1], resources.schemas())
    manifests = []
    for path in sorted(released.iterdir()):
        found, unread = parse_manifests(path.read_text(encoding="utf-8"), path.name)
        assert not unread, path.name
        manifests += found

    findings = evaluate_manifests(manifests, contract)

    assert [each for each in findings if each.severity is not Severity.INFO] == []


@pytest.mark.parametrize(
    "version", ["", "0.1.0", "v0.1", "v0.1.0.1", "v99.0.0", "v0.1.0-", "v00.1.0", "latest"]
)
def test_a_version_that_clusterctl_could_not_install_is_refused(
    repository: Repository, version: str
) -> None:
    """Proves: CC-06."""
    done = subprocess.run(
        [sys.executable, "hack/release.py", "check", version],
        cwd=repository.folder,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("release refused: ")


def test_a_release_candidate_passes(repository: Repository) -> None:
    version, _ = newest(repository)
    repository.python("hack/release.py", "check", f"{version}-rc.1")


@pytest.fixture(scope="module", params=["acme", "complete"])
def original(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, scratch: Path
) -> Repository:
    """A repository of one component, and one of several."""
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

    def test_a_template_of_a_kind_that_is_no_more_is_told(self, copy: Repository) -> None:
        template = copy.folder / "templates" / "cluster-template.yaml"
        text = re.sub(r"kind: (\w+)MachineTemplate", r"kind: \1BoxTemplate", template.read_text())
        template.write_text(text, encoding="utf-8")
        version, _ = newest(copy)
        said = copy.run("make", "release-manifests", f"VERSION={version}")
        assert re.search(r"warning: templates/cluster-template\.yaml: \w+BoxTemplate is no", said)
        assert said.count("warning") == text.count("BoxTemplate\nmetadata")

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
