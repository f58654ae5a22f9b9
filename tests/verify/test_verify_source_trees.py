"""Source trees are judged as kustomize builds them, at the positions of their sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.processes.tools.build import find_kubectl
from capsmith.judge.release.kustomized import BuiltTree, build_without_kustomize
from capsmith.manifests.parse import Manifest
from tests.verify.places import run
from tests.verify.releases import GROUP, crd, violations

CRD_FILE = "crd/bases/coralmachines.yaml"
LABEL = "cluster.x-k8s.io~1v1beta2"


@pytest.fixture
def kustomize(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the kubectl of these tests in PATH."""
    monkeypatch.setenv("PATH", str(Path(find_kubectl()).parent))


PLUGIN = {
    **{"apiVersion": "builtin", "kind": "ConfigMapGenerator", "metadata": {"name": "settings"}},
    "files": ["settings=https://example.com/settings"],
}
with_kustomize = pytest.mark.usefixtures("kustomize")


def tree(folder: Path, label: str = "v1", **further: Any) -> Path:
    """Write a tree in which a JSON patch labels the CRD; return its folder."""
    patch = [{"op": "add", "path": f"/metadata/labels/{LABEL}", "value": label}]
    bases, default = folder / "crd" / "bases", folder / "default"
    for each in (bases, default):
        each.mkdir(parents=True)
    (folder / CRD_FILE).write_text("# The machines.\n" + yaml.safe_dump(crd("CoralMachine")))
    patches = {"patches": [{"target": {"kind": "CustomResourceDefinition"}, "path": "label.yaml"}]}
    write(folder / "crd", {"resources": ["bases/coralmachines.yaml"], **patches})
    (folder / "crd" / "label.yaml").write_text(json.dumps(patch))
    write(default, {"resources": ["../crd"], "namePrefix": "coral-", **further})
    return folder


def write(folder: Path, kustomization: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))


def refused(*arguments: str) -> str:
    """Return the id of the finding for which nothing is judged."""
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 2, result.output
    (finding,) = json.loads(result.output)["findings"]
    return str(finding["id"])


@with_kustomize
@pytest.mark.parametrize("part", [".", "default"])
def test_json_patches_are_applied(tmp_path: Path, part: str) -> None:
    """Positions are exact in files outside of the given folders, too."""
    folder = tree(tmp_path / "config", label="v9")
    (label,) = [v for v in violations(str(folder / part)) if v["id"] == "GEN-02"]
    assert "v9" in label["message"]
    assert Path(label["file"]).resolve() == folder.resolve() / CRD_FILE
    assert label["line"] == 5
    assert "GEN-02" not in [v["id"] for v in violations(str(tree(tmp_path / "good")))]


def add_to_release(folder: Path, account: str) -> None:
    """Add an account and, behind it in the output of kustomize, a Deployment without a registry."""
    (folder / "default" / "account.yaml").write_text(account)
    pod = {"containers": [{"name": "manager", "image": "controller:latest"}]}
    manager = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "manager"}}
    manager["spec"] = {"template": {"spec": pod}}
    (folder / "default" / "manager.yaml").write_text(yaml.safe_dump(manager))
    write(folder / "default", {"resources": ["../crd", "account.yaml", "manager.yaml"]})


ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: manager\n  annotations:\n    "


@with_kustomize
def test_a_variable_that_is_a_block_hides_no_other_object(tmp_path: Path) -> None:
    """kustomize takes the line as a key with its value."""
    folder = tree(tmp_path / "config")
    add_to_release(folder, ACCOUNT + "${ROLE/#arn/example.com\\/role: arn}\n")
    assert "CC-27" in [each["id"] for each in violations(str(tmp_path))]
    assert left_out(str(tmp_path)) == []


@with_kustomize
def test_an_object_that_is_no_yaml_once_variables_are_replaced(tmp_path: Path) -> None:
    folder = tree(tmp_path / "config")
    add_to_release(folder, ACCOUNT + "role: ${ROLE:=[arn}\n")
    assert "CC-27" in [each["id"] for each in violations(str(tmp_path))]
    (note,) = left_out(str(tmp_path))
    assert note.startswith(f"{folder / 'default' / 'kustomization.yaml'}: an object that it builds")


@with_kustomize
def test_a_violation_is_accepted_outside_of_the_given_folders(tmp_path: Path) -> None:
    folder = tree(tmp_path / "config", label="v9")
    file = folder / CRD_FILE
    file.write_text(f"# capsmith:ignore GEN-02: tests\n{yaml.safe_dump(crd('CoralMachine'))}")
    assert "GEN-02" not in [v["id"] for v in violations(str(folder / "default"))]


@with_kustomize
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    folder = tree(tmp_path)
    before = sorted(folder.rglob("*"))
    assert "config.kubernetes.io" not in run(str(folder), "--advice").output
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    "further",
    [
        {"resources": ["https://example.com/crds.yaml"]},
        {"resources": ["example.com/owner/repository//config?ref=main"]},
        {"components": ["git@example.com:owner/repository"]},
        {"configurations": ["https://example.com/configuration.yaml"]},
        {"openapi": {"path": "http://example.com/schema.json"}},
        {"generators": ["github.com/owner/repository?ref=main"]},
        {"validators": ["git@example.com:owner/repository"]},
        {"transformers": ["plugins"]},
        {"generators": ["plugin.yaml"]},
        {"Resources": ["plugins"]},
        {"generators": [f"{yaml.safe_dump(PLUGIN)}\n"]},
        # No file can have a name of this length.
        {"resources": [5000 * "a"]},
    ],
    ids=[
        *("address", "repository", "ssh", "configuration", "schema"),
        *("generator", "validator", "transformers", "plugin", "case", "inline", "long"),
    ],
)
@with_kustomize
def test_nothing_is_downloaded(tmp_path: Path, further: dict[str, Any]) -> None:
    folder = tree(tmp_path)
    write(folder / "remote", further)
    (folder / "remote" / "plugin.yaml").write_text(yaml.safe_dump(PLUGIN))
    write(folder / "remote" / "plugins", {"resources": ["https://example.com/plugin.yaml"]})
    write(folder / "default", {"resources": ["../crd", "../remote"]})
    assert refused(str(folder)) == "verify-remote"


@with_kustomize
@pytest.mark.parametrize("is_absolute", [True, False])
def test_a_long_chain_of_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_absolute: bool
) -> None:
    """Judge kustomizations whose names together are longer than a path can be."""
    names = [f"{number:02}{'x' * 200}" for number in range(30)]
    config = tree(tmp_path / "config", label="v9")
    (config / "default" / "kustomization.yaml").unlink()
    for name, after in zip(names, [*names[1:], "config/crd"], strict=True):
        write(tmp_path / name, {"resources": [f"../{after}"]})
    monkeypatch.chdir(tmp_path)
    found = violations(str(tmp_path) if is_absolute else ".")
    (label,) = [v for v in found if v["id"] == "GEN-02"]
    assert Path(label["file"]).resolve() == config.resolve() / CRD_FILE


@pytest.mark.parametrize("name", ["github.com/owner/repository", "git::owner", "a.git"])
@with_kustomize
def test_nothing_is_cloned_whose_name_a_folder_has(tmp_path: Path, name: str) -> None:
    folder = tree(tmp_path)
    write(folder / "default", {"resources": ["../crd", name]})
    (folder / "default" / name).mkdir(parents=True)
    write(folder / "default" / name, {"namePrefix": "a-"})
    assert refused(str(folder)) == "verify-remote"


@with_kustomize
def test_a_tree_that_kustomize_refuses(tmp_path: Path) -> None:
    folder = tree(tmp_path, patches=[{"patch": "kind: Absent"}])
    assert refused(str(folder)) == "verify-kustomize"


def left_out(*arguments: str) -> list[str]:
    return list(json.loads(run(*arguments, "--format", "json").output)["leftOut"])


@with_kustomize
def test_kustomizations_beside_the_release_are_left_out(tmp_path: Path) -> None:
    """Neither overlays of the release nor templates that cannot be built end the verdict."""
    folder = tree(tmp_path / "config", label="v9")
    write(folder / "debug", {"resources": ["../crd", "flags.yaml"]})
    flags = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flags"}}
    (folder / "debug" / "flags.yaml").write_text(yaml.safe_dump(flags))
    names = ["https://example.com/template.yaml", "../shared/widgets.yaml"]
    write(tmp_path / "flavors", {"resources": names})
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "widgets.yaml").write_text(yaml.safe_dump(crd("CoralWidget")))
    notes = left_out(str(tmp_path))
    assert [Path(note.partition(":")[0]).parent.name for note in notes] == ["debug", "flavors"]
    assert "share files" in notes[0]
    assert "nothing is downloaded" in notes[1]
    assert "GEN-02" in [v["id"] for v in violations(str(tmp_path))]
    assert f"left out: {notes[1]}" in run(str(tmp_path)).output
    assert "CoralWidget" not in run(str(tmp_path), "--advice").output


def write_objects_beside(folder: Path) -> None:
    """Write a CRD into a file of its own, and another one into a kustomization of its own."""
    for name in ("tools", "extra"):
        (folder / name).mkdir()
        (folder / name / "install.yaml").write_text(yaml.safe_dump(crd(f"Coral{name.title()}")))
    write(folder / "extra", {"resources": ["install.yaml"]})
    (folder / "templates").mkdir()
    sample = {"apiVersion": f"{GROUP}/v9", "kind": "CoralMachine", "metadata": {"name": "sample"}}
    (folder / "templates" / "cluster-template.yaml").write_text(yaml.safe_dump(sample))


@with_kustomize
def test_objects_beside_the_release_are_left_out(tmp_path: Path) -> None:
    """What the release's kustomization does not build is not installed, but templates are read."""
    tree(tmp_path / "config")
    write_objects_beside(tmp_path)
    assert_only_the_release_is_judged(tmp_path)


def test_objects_beside_the_release_are_left_out_without_kustomize(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = tree(tmp_path / "config")
    write(folder / "crd", {"resources": ["bases/coralmachines.yaml"]})
    write_objects_beside(tmp_path)
    assert_only_the_release_is_judged(tmp_path)


def assert_only_the_release_is_judged(folder: Path) -> None:
    (note,) = left_out(str(folder))
    reason = "no kustomization called default builds this file; the same holds for 1 more"
    assert note == f"{folder}/extra/install.yaml: {reason}"
    output = run(str(folder), "--advice").output
    assert "CoralTools" not in output
    assert "CoralExtra" not in output
    assert "CC-80" in [violation["id"] for violation in violations(str(folder))]


def test_without_a_release_all_objects_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write_objects_beside(tmp_path)
    assert left_out(str(tmp_path)) == []
    output = run(str(tmp_path), "--advice").output
    assert "CoralTools" in output
    assert "CoralExtra" in output


def test_sources_that_a_components_file_hides_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = tmp_path / "config"
    write(folder, {"resources": ["machines.yaml"]})
    (folder / "machines.yaml").write_text(yaml.safe_dump(crd("CoralMachine")))
    assert left_out(str(tmp_path)) == []
    stale = tmp_path / "infrastructure-components.yaml"
    stale.write_text(yaml.safe_dump(crd("CoralMachine")))
    (note,) = left_out(str(tmp_path))
    assert note == (
        f"{tmp_path}: 2 files in the source tree: remove {stale} to verify the sources instead"
    )
    assert left_out(str(folder)) == left_out(str(stale)) == []
    (folder / "kustomization.yaml").unlink()
    assert left_out(str(tmp_path)) == []


def test_the_output_of_a_former_build_is_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the sources build is judged if they have another CRD than each components file."""
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = tmp_path / "config"
    write(folder, {"resources": ["machines.yaml"]})
    (folder / "machines.yaml").write_text(yaml.safe_dump(crd("CoralMachine")))
    old = tmp_path / "infrastructure-components.yaml"
    former = crd("CoralMachine", spec={"size": {"type": "string"}})
    old.write_text(yaml.safe_dump_all([former, crd("CoralBox")]))
    sample = {"apiVersion": f"{GROUP}/v1", "kind": "CoralMachine", "metadata": {"name": "sample"}}
    template = tmp_path / "cluster-template.yaml"
    template.write_text(yaml.safe_dump({**sample, "spec": {"size": "big"}}))
    (note,) = left_out(str(tmp_path))
    assert note == (
        f"{old}: the sources build another CustomResourceDefinition coralmachines.{GROUP}; "
        "name it to verify it"
    )
    builds: list[int] = []

    def build(manifests: tuple[Manifest, ...]) -> BuiltTree:
        builds.append(len(manifests))
        return build_without_kustomize(manifests)

    monkeypatch.setattr("capsmith.commands.verify.build_without_kustomize", build)
    found = violations(str(tmp_path))
    assert "CC-80" in [each["id"] for each in found]
    assert len(builds) == 1
    assert old.name not in [Path(each["file"]).name for each in found]
    assert "CC-80" not in [each["id"] for each in violations(str(old), str(template))]
    # One that is up to date may be the release, whatever the others are.
    current = tmp_path / "releases"
    current.mkdir()
    (current / "ipam-components.yaml").write_text(yaml.safe_dump(crd("CoralMachine")))
    assert "remove" in left_out(str(tmp_path))[0]
    (current / "ipam-components.yaml").unlink()
    write(folder, {"resources": ["machines.yaml", "missing.yaml"], "replacements": [{"path": "x"}]})
    assert "remove" in left_out(str(tmp_path))[0]


def test_the_file_of_a_kind_called_components_is_a_source(tmp_path: Path) -> None:
    for name in ("Components", "CoralComponents"):
        (tmp_path / f"{GROUP}_{name.lower()}.yaml").write_text(yaml.safe_dump(crd(name)))
    assert "CC-20" not in [each["id"] for each in violations(str(tmp_path), "--advice")]


def test_files_that_are_parts_of_another_one_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree without kustomizations may have its objects in one file as well."""
    monkeypatch.setenv("PATH", str(tmp_path))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "coral-system"}}
    settings = {**namespace, "kind": "ConfigMap"}
    whole, part = tmp_path / "install.yaml", tmp_path / "namespace.yaml"
    whole.write_text(yaml.safe_dump_all([namespace, settings, crd("CoralMachine")]))
    part.write_text(yaml.safe_dump(namespace))
    assert "CC-22" not in [each["id"] for each in violations(str(tmp_path))]
    assert left_out(str(tmp_path)) == [f"{part}: its objects are also in {whole}"]
    assert "CC-22" in [each["id"] for each in violations(str(whole), str(part))]
    part.write_text(yaml.safe_dump_all([namespace, {**settings, "metadata": {"name": "other"}}]))
    assert left_out(str(tmp_path)) == []
    assert "CC-22" in [each["id"] for each in violations(str(tmp_path))]


def test_a_cluster_template_without_components_is_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cluster-template-disable-components.yaml` is a flavor: the sources are judged."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "machines.yaml").write_text(yaml.safe_dump(crd("CoralMachine")))
    sample = {"apiVersion": f"{GROUP}/v9", "kind": "CoralMachine", "metadata": {"name": "sample"}}
    for name in ("cluster-template-disable-components", "clusterclass-two-components-coral"):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(sample))
    found = [(each["id"], Path(each["file"]).name) for each in violations(str(tmp_path))]
    assert ("GEN-01", "machines.yaml") in found
    assert ("CC-80", "cluster-template-disable-components.yaml") in found
    assert "CC-20" not in dict(found)


def test_kustomizations_beside_the_release_may_need_kustomize(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = tree(tmp_path / "config")
    write(folder / "crd", {"resources": ["bases/coralmachines.yaml"]})
    write(tmp_path / "flavors", {"replacements": [{"path": "a.yaml"}]})
    (note,) = left_out(str(tmp_path))
    assert "replacements" in note
    write(folder / "default", {"resources": ["../crd"], "replacements": [{"path": "a.yaml"}]})
    assert refused(str(tmp_path)) == "verify-no-kustomize"


@with_kustomize
def test_files_of_tests_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path / "config")
    others = tmp_path / "test" / "e2e" / "data"
    others.mkdir(parents=True)
    (others / "core-components.yaml").write_text(yaml.safe_dump(crd("CoralWidget")))
    assert left_out(str(tmp_path)) == [f"{tmp_path}: 1 file in folders called e2e, test"]
    assert "CoralWidget" not in run(str(tmp_path), "--advice").output
    assert left_out(str(others)) == []
    assert left_out(str(tmp_path / "test")) == []


@with_kustomize
def test_templates_of_helm_charts_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path / "config")
    templates = tmp_path / "charts" / "coral" / "templates"
    (templates / "rbac").mkdir(parents=True)
    for name in ("manager.yaml", "rbac/role.yaml"):
        (templates / name).write_text("{{- if .Values.enabled }}\nkind: {{ .Values.kind }}\n")
    assert left_out(str(tmp_path)) == []
    for name in ("Chart.yaml", "values.yaml"):
        (templates.parent / name).write_text("name: coral\n")
    (note,) = left_out(str(tmp_path))
    assert note == f"{tmp_path}: 2 files in folders called templates of Helm charts"
    assert "templates/manager.yaml" not in run(str(tmp_path), "--advice").output


def test_crds_that_a_chart_does_not_install_are_left_out(tmp_path: Path) -> None:
    """Where only a chart has a Deployment, other CRDs may be input of code generators."""
    chart = tmp_path / "charts" / "coral"
    for folder in (chart / "templates", chart / "crds", tmp_path / "api"):
        folder.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("name: coral\n")
    copied = '{{ .Files.Get "reefs.example.com.yaml" }}\n'
    (chart / "templates" / "crds.yaml").write_text(copied)
    places = {"api/a.yaml": "Config", "api/b.yaml": "Setting", "api/c.yaml": "Reef"}
    for file, kind in {**places, "charts/coral/crds/d.yaml": "Coral"}.items():
        document = crd(kind, group="example.com")
        del document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"]
        (tmp_path / file).write_text(yaml.safe_dump(document))
    machine = crd("CoralMachine")
    del machine["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"]
    (tmp_path / "api" / "machine.yaml").write_text(yaml.safe_dump(machine))

    def judged() -> list[str]:
        found = violations(str(tmp_path), "--select", "CRD-24")
        return sorted({Path(violation["file"]).name for violation in found})

    assert judged() == ["a.yaml", "b.yaml", "c.yaml", "d.yaml", "machine.yaml"]
    (chart / "templates" / "deployment.yaml").write_text("{{ if .Values }}\nkind: Deployment\n")
    assert judged() == ["c.yaml", "d.yaml", "machine.yaml"]
    reason = "only a Helm chart has a Deployment, and it does not install this CRD"
    note = f"{tmp_path}/api/a.yaml: {reason}; the same holds for 1 more"
    assert left_out(str(tmp_path))[-1] == note
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "coral"}}
    (tmp_path / "api" / "manager.yaml").write_text(yaml.safe_dump(deployment))
    assert judged() == ["a.yaml", "b.yaml", "c.yaml", "d.yaml", "machine.yaml"]


@with_kustomize
def test_releases_among_examples_are_left_out(tmp_path: Path) -> None:
    """They may be of another version than the sources."""
    tree(tmp_path / "config", label="v9")
    sample = tmp_path / "samples" / "v1.2.2"
    sample.mkdir(parents=True)
    for name in ("infrastructure-components.yaml", "metadata.yaml"):
        (sample / name).write_text(yaml.safe_dump(crd("CoralReef")))
    messages = [v["message"] for v in violations(str(tmp_path), "--advice")]
    assert any("CoralMachine" in each for each in messages)
    assert not any("CoralReef" in each for each in messages)
    assert f"{tmp_path}: 2 files in folders called samples" in left_out(str(tmp_path))
    assert violations(str(tmp_path / "samples"))


@with_kustomize
def test_a_tree_of_several_releases(tmp_path: Path) -> None:
    folder = tree(tmp_path)
    for name in ("one", "other"):
        write(folder / name, {"resources": ["../default", "namespace.yaml"]})
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        (folder / name / "namespace.yaml").write_text(yaml.safe_dump(namespace))
    assert refused(str(folder)) == "verify-several"
    assert violations(str(folder / "one"))


@with_kustomize
def test_an_overlay_is_the_release_if_it_is_the_only_one(tmp_path: Path) -> None:
    """Samples that cannot be built do not end the verdict."""
    folder = tree(tmp_path / "config", label="v9")
    write(folder / "release", {"resources": ["../default"]})
    write(folder / "samples", {"resources": ["missing.yaml"]})
    (note,) = left_out(str(tmp_path))
    assert Path(note.partition(":")[0]).parent.name == "samples"
    assert note.endswith("missing.yaml does not exist in this tree, and nothing is downloaded")
    assert "GEN-02" in [v["id"] for v in violations(str(tmp_path))]


@with_kustomize
@pytest.mark.parametrize("names", [("dev",), ("provisioning-e2e",), ("dev", "test_kind")])
def test_an_overlay_for_developers_is_not_the_release(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """It may have an image that is never published; here it mends what is wrong in the release."""
    folder = tree(tmp_path / "config", label="v9")
    patch = [{"op": "replace", "path": f"/metadata/labels/{LABEL}", "value": "v1"}]
    target = {"kind": "CustomResourceDefinition"}
    patches = [{"target": target, "patch": json.dumps(patch)}]
    for each in names:
        write(folder / each, {"resources": ["../default"], "patches": patches})
    assert "GEN-02" in [v["id"] for v in violations(str(tmp_path))]


@with_kustomize
def test_one_overlay_beside_those_for_developers_is_the_release(tmp_path: Path) -> None:
    folder = tree(tmp_path / "config", label="v9")
    patch = [{"op": "replace", "path": f"/metadata/labels/{LABEL}", "value": "v1"}]
    target = {"kind": "CustomResourceDefinition"}
    patches = [{"target": target, "patch": json.dumps(patch)}]
    write(folder / "dev", {"resources": ["../default"]})
    write(folder / "release", {"resources": ["../default"], "patches": patches})
    assert "GEN-02" not in [v["id"] for v in violations(str(tmp_path))]


@with_kustomize
def test_the_base_of_an_overlay_that_cannot_be_built_is_the_release(tmp_path: Path) -> None:
    folder = tree(tmp_path / "config", label="v9")
    write(folder / "variant", {"resources": ["../default", "generated.yaml"]})
    assert "GEN-02" in [v["id"] for v in violations(str(tmp_path))]
    (note,) = left_out(str(tmp_path))
    reason = "generated.yaml does not exist in this tree, and nothing is downloaded"
    assert note == f"{folder}/variant/kustomization.yaml: {reason}"


@with_kustomize
@pytest.mark.parametrize(
    "patches",
    [{"patches": [{"path": "image.yaml"}]}, {"patchesStrategicMerge": ["image.yaml"]}],
    ids=["patches", "patchesStrategicMerge"],
)
def test_a_patch_that_the_build_generates_is_named(tmp_path: Path, patches: dict[str, Any]) -> None:
    folder = tree(tmp_path)
    write(folder / "default", {"resources": ["../crd"], **patches})
    result = run(str(folder), "--format", "json")
    (finding,) = json.loads(result.output)["findings"]
    assert finding["message"].startswith("image.yaml does not exist in this tree")


def test_errors_of_several_lines_are_reported_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    lines = [
        "# Warning",
        'E1129 10:00:00.1 7 run.go:72] "command failed" err=<',
        "\tno file",
        "\t: x",
        " >",
    ]
    program.write_text("#!/bin/sh\nprintf '%s\\n' '" + "' '".join(lines) + "' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    result = run(str(tree(tmp_path / "config")), "--format", "json")
    (finding,) = json.loads(result.output)["findings"]
    assert finding["message"] == "kustomize build failed: no file : x"


@with_kustomize
def test_files_that_need_an_option_of_kustomize_are_named(tmp_path: Path) -> None:
    folder = tree(tmp_path / "config")
    (folder / "shared.yaml").write_text(yaml.safe_dump(crd("CoralWidget")))
    write(folder / "default", {"resources": ["../crd", "../shared.yaml"]})
    result = run(str(folder), "--format", "json")
    (finding,) = json.loads(result.output)["findings"]
    assert finding["message"] == (
        f"kustomize build failed: {folder}/shared.yaml is outside the folder of the kustomization "
        f"{folder}/default"
    )
    assert "--load-restrictor LoadRestrictionsNone" in finding["hint"]


def test_a_build_that_does_not_end_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr("capsmith.workspace.kustomize._TIMEOUT", 0.1)
    result = run(str(tree(tmp_path / "config")), "--format", "json")
    (finding,) = json.loads(result.output)["findings"]
    assert finding["message"] == "kustomize build failed: it has not ended after 0.1 seconds"


@with_kustomize
def test_a_default_without_crds_is_no_release_beside_others(tmp_path: Path) -> None:
    """The kinds of a provider are not left out because of an extension beside it."""
    folder = tree(tmp_path / "config", label="v9")
    (folder / "default").rename(folder / "infrastructure")
    extension = tmp_path / "extension" / "default"
    extension.mkdir(parents=True)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extension"}}
    (extension / "settings.yaml").write_text(yaml.safe_dump(settings))
    write(extension, {"resources": ["settings.yaml"]})
    assert "GEN-02" in [v["id"] for v in violations(str(tmp_path))]
    assert left_out(str(tmp_path)) == []


@with_kustomize
def test_the_kustomization_that_shares_files_is_named(tmp_path: Path) -> None:
    """It is one beside the release, which is built first."""
    tree(tmp_path / "config")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "widgets.yaml").write_text(yaml.safe_dump(crd("CoralWidget")))
    write(tmp_path / "shared", {"resources": ["widgets.yaml"]})
    for name in ("one", "other"):
        write(tmp_path / name, {"resources": ["../shared", "settings.yaml"]})
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        (tmp_path / name / "settings.yaml").write_text(yaml.safe_dump(settings))
    notes = [note for note in left_out(str(tmp_path)) if "share files" in note]
    reason = f"this kustomization and {tmp_path}/one/kustomization.yaml share files"
    assert [note.partition(",")[0] for note in notes] == [
        f"{tmp_path}/other/kustomization.yaml: {reason}"
    ]


def test_without_kustomize_json_patches_are_no_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refused(str(tree(tmp_path / "config"))) == "verify-no-kustomize"


def test_without_kustomize_merge_patches_are_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = tree(tmp_path / "config")
    metadata = {"name": f"coralmachines.{GROUP}", "labels": {"cluster.x-k8s.io/v1beta2": "v9"}}
    patch = {"kind": "CustomResourceDefinition", "metadata": metadata}
    write(
        folder / "crd",
        {"resources": ["bases/coralmachines.yaml"], "patches": [{"patch": yaml.safe_dump(patch)}]},
    )
    assert [v["id"] for v in violations(str(folder)) if "v9" in v["message"]]
