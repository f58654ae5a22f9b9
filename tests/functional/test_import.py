"""``capsmith import``: a provider.yaml from release assets, folders and source trees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.functional.test_cli import ACME, _in_a_folder_of_its_own, run
from tests.unit.importing.crds import crd, provider

__all__ = ["_in_a_folder_of_its_own"]
_REPOSITORY = ("--repository", "https://github.com/acme/cluster-api-provider-acme")


def _components(*crds: object) -> Path:
    path = Path("infrastructure-components.yaml")
    path.write_text(yaml.safe_dump_all(crds or provider(spec={"size": {"type": "string"}})))
    return path


def test_release_assets_become_a_provider_that_can_be_generated() -> None:
    Path("metadata.yaml").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
                "kind": "Metadata",
                "releaseSeries": [
                    {"major": 1, "minor": 9, "contract": "v1beta1"},
                    {"major": 1, "minor": 10, "contract": "v1beta2"},
                ],
            }
        )
    )
    _components()
    result = run("import", ".", "-o", "imported.yaml", *_REPOSITORY)
    assert result.exit_code == 0, result.output
    assert (
        "4 CRDs: 4 with a role of the contract, 0 further kinds, 0 not generated" in result.output
    )
    written = yaml.safe_load(Path("imported.yaml").read_text())
    assert written["name"] == "acme"
    assert written["releases"] == {"v1.9": "v1beta1", "v1.10": "v1beta2"}
    assert list(written["releases"]) == ["v1.9", "v1.10"]
    assert run("validate", "imported.yaml").exit_code == 0
    assert run("generate", "imported.yaml", "-o", "repo").exit_code == 0


def test_the_same_input_gives_the_same_text() -> None:
    path = _components()
    for name in ("one.yaml", "two.yaml"):
        run("import", path, "-o", name, *_REPOSITORY)
    assert Path("one.yaml").read_bytes() == Path("two.yaml").read_bytes()


def test_a_source_tree_is_built_as_kustomize_does() -> None:
    run("generate", ACME, "-o", "repo")
    result = run("import", "repo", "-o", "again.yaml", *_REPOSITORY)
    assert result.exit_code == 0, result.output
    kinds = yaml.safe_load(Path("again.yaml").read_text())
    original = yaml.safe_load(ACME.read_text())
    assert list(kinds["infrastructure"]) == list(original["infrastructure"])
    assert (kinds["contracts"], kinds["credentials"]) == (["v1beta2"], "AcmeIdentity")
    assert run("import", "repo", "-o", ACME, "--check").exit_code == 0


def test_crds_of_tests_are_left_out() -> None:
    """A test double is no kind of the provider, unless its folder is named."""
    _components()
    Path("test/crd").mkdir(parents=True)
    double = crd("FakeMachine", spec={"size": {"type": "string"}})
    Path("test/crd/fakemachines.yaml").write_text(yaml.safe_dump(double))
    result = run("import", ".", "--dry-run", *_REPOSITORY)
    assert "4 CRDs" in result.output
    assert "info import-tests: files in folders called test are left out: 1" in result.output
    result = run("import", ".", "test", "--dry-run", *_REPOSITORY)
    assert "5 CRDs" in result.output


def test_absolute_paths_and_single_files_are_read() -> None:
    path = _components().resolve()
    assert run("import", path, "-o", "imported.yaml", *_REPOSITORY).exit_code == 0
    checked = run("import", path.parent, "-o", "imported.yaml", "--check")
    assert checked.exit_code == 0, checked.output


def test_losses_exit_with_1_unless_they_are_accepted() -> None:
    path = _components(*provider(spec={"size": {"type": "string", "uniqueItems": True}}))
    lossy = run("import", path, "-o", "one.yaml", *_REPOSITORY)
    assert lossy.exit_code == 1
    assert "error import-lost: AcmeMachine v1beta1 .spec.versions[0]" in lossy.output
    assert Path("one.yaml").exists()
    accepted = run("import", path, "-o", "two.yaml", "--partial", *_REPOSITORY)
    assert accepted.exit_code == 0
    assert "warning import-lost" in accepted.output


def test_the_report_is_data_on_request() -> None:
    path = _components(*provider(spec={"size": {"type": "string", "uniqueItems": True}}))
    result = run("import", path, "--format", "json", *_REPOSITORY)
    report = json.loads(result.output)
    assert report["exitCode"] == 1
    (machine,) = (
        each
        for each in report["facts"]["crds"]
        if each["name"] == "acmemachines.infrastructure.cluster.x-k8s.io"
    )
    (loss,) = (each for each in machine["differences"] if each["what"] == "uniqueItems")
    assert loss["original"] is True
    assert loss["version"] == "v1beta1"
    assert loss["field"] == ".spec.size"


def test_check_finds_what_was_edited_and_writes_nothing() -> None:
    path = _components()
    run("import", path, "-o", "imported.yaml", *_REPOSITORY)
    file = Path("imported.yaml")
    file.write_text(file.read_text().replace("size: string", "size: {type: string, maxLength: 3}"))
    before = file.read_bytes()
    result = run("import", path, "-o", "imported.yaml", "--check")
    assert result.exit_code == 1
    assert "maxLength is added: 3" in result.output
    assert file.read_bytes() == before


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_an_existing_file_is_not_replaced(options: tuple[str, ...]) -> None:
    """A dry run ends as the import would end."""
    path = _components()
    Path("provider.yaml").write_text("mine")
    result = run("import", path, *_REPOSITORY, *options)
    assert result.exit_code == 1
    assert "import-exists" in result.output
    assert Path("provider.yaml").read_text() == "mine"
    assert not list(Path().glob(".provider.yaml*"))


def test_an_existing_file_is_refused_before_the_crds_are_read() -> None:
    Path("provider.yaml").write_text("mine")
    result = run("import", "missing.yaml", *_REPOSITORY)
    assert result.exit_code == 1
    assert "import-exists" in result.output


def test_a_dry_run_reports_losses_and_writes_nothing() -> None:
    path = _components(*provider(spec={"size": {"type": "string", "uniqueItems": True}}))
    result = run("import", path, "--dry-run", *_REPOSITORY)
    assert result.exit_code == 1
    assert "error import-lost: AcmeMachine v1beta1 .spec.versions[0]" in result.output
    assert not Path("provider.yaml").exists()


def test_check_and_dry_run_exclude_each_other() -> None:
    result = run("import", _components(), "--check", "--dry-run")
    assert result.exit_code == 2
    assert "--check and --dry-run exclude each other" in result.output


@pytest.mark.parametrize(
    ("option", "value"), [("--name", "Acme Cloud"), ("--repository", "github.com/acme")]
)
def test_an_option_of_a_wrong_form_ends_the_import(option: str, value: str) -> None:
    result = run("import", _components(), option, value)
    assert result.exit_code == 2
    assert f"{value!r} is not valid" in result.output
    assert not Path("provider.yaml").exists()


def test_a_file_that_cannot_be_written_is_named() -> None:
    path = _components()
    result = run("import", path, "-o", "missing/provider.yaml", *_REPOSITORY)
    assert result.exit_code == 2
    assert "output-unwritable" in result.output
    assert "missing" in result.output


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("kind: ConfigMap\n", "import-nothing"),
        ("CustomResourceDefinition: [", "import-nothing"),
        ("# CustomResourceDefinition\n" + "[" * 5000, "import-nothing"),
    ],
)
def test_files_without_crds_are_unreadable_input(text: str, id: str) -> None:
    Path("components.yaml").write_text(text)
    result = run("import", "components.yaml", *_REPOSITORY)
    assert result.exit_code == 2
    assert id in result.output
    assert not Path("provider.yaml").exists()


def test_crds_that_a_build_creates_must_be_generated_first() -> None:
    config = Path("source", "config")
    config.mkdir(parents=True)
    config.joinpath("namespace.yaml").write_text("kind: Namespace\n")
    config.joinpath("kustomization.yaml").write_text(
        "# The folder of each CustomResourceDefinition.\n"
        "resources: [./namespace.yaml, ../build/crds]\n"
    )
    result = run("import", "source", *_REPOSITORY)
    assert result.exit_code == 2
    lines = " ".join(result.output.split())
    assert "Generate ../build/crds first, which source/config/kustomization.yaml lists" in lines


def test_templates_that_are_not_yaml_are_no_obstacle() -> None:
    source = Path("source")
    source.mkdir()
    _components().rename(source / "crds.yaml")
    source.joinpath("cluster-template.yaml").write_text("kind: Namespace\nnames: [${NAMES\n")
    chart = source / "chart" / "templates"
    chart.mkdir(parents=True)
    chart.with_name("Chart.yaml").write_text("name: acme\n")
    chart.joinpath("crds.yaml").write_text("kind: CustomResourceDefinition\n{{- .Values.x }}\n")
    result = run("import", "source", *_REPOSITORY)
    assert result.exit_code == 0, result.output
    source.joinpath("broken.yaml").write_text("kind: CustomResourceDefinition\nnames: [\n")
    assert "manifest-yaml" in run("import", "source", "-o", "other.yaml", *_REPOSITORY).output


def test_a_provider_without_label_needs_a_name() -> None:
    helper = crd("AcmeHost")
    helper["metadata"]["labels"] = {"cluster.x-k8s.io/v1beta2": "v1beta1"}
    path = _components(helper)
    assert run("import", path, *_REPOSITORY).exit_code == 2
    assert run("import", path, "--name", "acme", *_REPOSITORY, "--partial").exit_code == 1
    assert "AcmeHost" in Path("provider.yaml").read_text()


def test_a_further_kind_may_be_called_a_template() -> None:
    path = _components(*provider(), crd("AcmeDataTemplate", spec={"name": {"type": "string"}}))
    result = run("import", path, "-o", "imported.yaml", *_REPOSITORY)
    assert result.exit_code == 0, result.output
    assert "1 further kinds, 0 not generated" in result.output
    assert run("generate", "imported.yaml", "-o", "repo").exit_code == 0
    path = _components(*provider(), crd("AcmeHost"), crd("AcmeHostTemplate"))
    assert run("import", path, "-o", "both.yaml", *_REPOSITORY).exit_code == 0
    clash = Path("imported.yaml").read_text().replace("AcmeDataTemplate", "AcmeMachineTemplate")
    Path("clash.yaml").write_text(clash)
    assert "TP-02" in run("validate", "clash.yaml").output


def test_kinds_of_others_are_left_out_unless_they_are_named() -> None:
    foreign = [crd(kind, group="cni.example.com") for kind in ("BgpPeer", "BgpFilter", "Tier")]
    for each in foreign:
        del each["metadata"]["labels"]
    path = _components(*provider(), *foreign)
    result = run("import", path, "-o", "one.yaml", *_REPOSITORY)
    assert result.exit_code == 0, result.output
    assert result.output.count("info import-foreign") == 3
    assert "BgpPeer" not in Path("one.yaml").read_text()
    assert "groups" not in Path("one.yaml").read_text()
    run("import", path, "-o", "two.yaml", *_REPOSITORY, "--role", "BgpPeer=Resource")
    assert "BgpPeer" in Path("two.yaml").read_text()


def test_roles_can_be_named() -> None:
    path = _components()
    run("import", path, *_REPOSITORY, "--role", "AcmeMachine=Resource")
    written = yaml.safe_load(Path("provider.yaml").read_text())
    assert written["infrastructure"]["AcmeMachine"]["implements"] == "Resource"
    assert run("import", path, *_REPOSITORY, "--role", "AcmeMachine=Boss").exit_code == 2


def test_crds_of_a_former_api_come_back_as_those_of_the_present_one() -> None:
    crds = provider(spec={"size": {"type": "string"}})
    options = ("--dry-run", "--format", "json", *_REPOSITORY)
    expected = json.loads(run("import", _components(*crds), *options).output)["facts"]["crds"]
    for each in crds:
        each["apiVersion"] = "apiextensions.k8s.io/v1beta1"
        (version,) = each["spec"]["versions"]
        each["spec"]["validation"] = version.pop("schema")
        version.pop("additionalPrinterColumns")
    assert (
        json.loads(run("import", _components(*crds), *options).output)["facts"]["crds"] == expected
    )


def test_a_version_without_schema_is_reported_before_anything_is_written() -> None:
    crds = provider()
    crds[2]["spec"]["versions"][0]["schema"] = {}
    result = run("import", _components(*crds), "-o", "imported.yaml", *_REPOSITORY)
    assert result.exit_code == 1, result.output
    assert "AcmeMachine v1beta1: the version has no schema" in result.output
    assert not Path("imported.yaml").exists()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("spec", "versions"), "v1", ".spec.versions: a list is required"),
        (("spec", "names", "kind"), 7, ".spec.names.kind: a string is required"),
        (("properties",), "x", ".properties: a mapping is required"),
        (("properties", "size"), 7, ".size: a mapping is required"),
        (("properties", "own"), "text", ".own: a mapping is required"),
        (("required",), [1], ".required[0]: a string is required"),
        (("x-kubernetes-validations",), [{"rule": 1}], ".rule: a string is required"),
        (("maxProperties",), True, ".maxProperties: an integer is required"),
    ],
)
def test_what_is_no_crd_is_reported_before_anything_is_written(
    path: tuple[Any, ...], value: object, message: str
) -> None:
    crds = provider(spec={"size": {"type": "string"}})
    place = crds[1]
    if path[0] != "spec":
        schema = place["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        place = schema["properties"]["spec"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    result = run("import", _components(*crds), "-o", "imported.yaml", *_REPOSITORY)
    assert result.exit_code == 1, result.output
    assert "import-malformed" in result.output
    assert message in result.output
    assert not Path("imported.yaml").exists()


def _without_labels(crds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for each in crds:
        each["metadata"].pop("labels")
    return crds


def test_a_name_is_guessed_from_the_namespace_of_the_components() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capz-system"}}
    path = _components(namespace, *_without_labels(provider()))
    result = run("import", path, "-o", "one.yaml", *_REPOSITORY)
    assert (result.exit_code, "capz, after its namespace, is a guess" in result.output) == (0, True)
    assert yaml.safe_load(Path("one.yaml").read_text())["name"] == "capz"
    named = run("import", path, "-o", "two.yaml", "--name", "acme", *_REPOSITORY)
    assert "import-name" not in named.output


def test_a_name_is_guessed_from_a_kustomization() -> None:
    Path("crd").mkdir()
    Path("crd/crds.yaml").write_text(yaml.safe_dump_all(_without_labels(provider())))
    text = "namespace: cluster-api-provider-acme-system\nresources: [crd/crds.yaml]\n"
    Path("kustomization.yaml").write_text(text)
    assert run("import", ".", "-o", "one.yaml", *_REPOSITORY).exit_code == 0
    assert yaml.safe_load(Path("one.yaml").read_text())["name"] == "acme"
    Path("kustomization.yaml").write_text("resources: [crd/crds.yaml]\n")
    assert "Add --name" in run("import", ".", "-o", "two.yaml", *_REPOSITORY).output


def test_import_names_the_conversions_that_the_author_has_to_write() -> None:
    spec = {"type": "object", "required": ["disk"], "properties": {"disk": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}
    old = {"name": "v1alpha1", "served": True, "storage": False, "subresources": {"status": {}}}
    old["schema"] = {"openAPIV3Schema": schema}
    path = _components(*provider(spec={"disk": {"type": "string"}}, versions=[old]))
    result = run("import", path, "-o", "one.yaml", "--partial", *_REPOSITORY)
    assert "import-conversion" in result.output
    file = "src/cluster_api_provider_acme/conversions/acme_machine_v1alpha1.py"
    assert f"AcmeMachine: {file} has no spec_from_hub, because v1alpha1 requires disk" in (
        " ".join(result.output.split())
    )
    assert run("generate", "one.yaml", "-o", "repo").exit_code == 0
    assert "NotImplementedError" in (Path("repo") / file).read_text()


def test_a_scaffold_converts_an_object_that_differs_inside() -> None:
    text = {"a": {"type": "string"}}
    spoke = {"type": "object", "required": ["a"], "properties": text}
    hub = {**spoke, "properties": {**text, "b": {"type": "integer"}}}
    spec = {"type": "object", "required": ["net"], "properties": {"net": spoke}}
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}
    old = {"name": "v1alpha1", "served": True, "storage": False, "subresources": {"status": {}}}
    old["schema"] = {"openAPIV3Schema": schema}
    around = {"required": ["net"]}
    path = _components(*provider(spec={"net": hub}, versions=[old], around=around))
    result = run("import", path, "-o", "one.yaml", "--partial", *_REPOSITORY)
    assert "import-conversion" not in result.output
    assert run("generate", "one.yaml", "-o", "repo").exit_code == 0
    code = """
from cluster_api_provider_acme._generated.api import acme_machine as hub
from cluster_api_provider_acme._generated.conversion import acme_machine_v1alpha1 as v1alpha1
from cluster_api_provider_acme.conversions import acme_machine_v1alpha1 as functions
spoke = v1alpha1.Spec(net=v1alpha1.SpecNet(a="x"))
print(functions.spec_to_hub(spoke).net == hub.AcmeMachineSpecNet(a="x"))
stored = hub.AcmeMachineSpec(net=hub.AcmeMachineSpecNet(a="x", b=1))
print(functions.spec_from_hub(stored).net == v1alpha1.SpecNet(a="x"))
"""
    folders = os.pathsep.join(("repo/src", "repo/vendor"))
    assert _run_python(code, folders) == "True\nTrue\n"


def _run_python(code: str, folders: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": folders},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
