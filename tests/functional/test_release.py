"""What `make release-manifests` writes, and what the release guard refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith import resources
from capsmith.contract.load import load_contract
from capsmith.findings import Severity
from capsmith.judge.checks.evaluate import evaluate_manifests
from capsmith.manifests.parse import Manifest, parse_manifests
from tests.functional.conftest import Repository

TYPES = {
    "infrastructure": "infrastructure",
    "bootstrap": "bootstrap",
    "controlPlane": "control-plane",
    "ipam": "ipam",
    "runtimeExtension": "runtime-extension",
    "addon": "addon",
}
KUBEADM_BINDING = "-kubeadm-bootstrap-rolebinding"
KUBEADM = ("capi-kubeadm-bootstrap-system", "capi-kubeadm-bootstrap-manager")
KUBEADM_SUBJECTS = [
    {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "User",
        "name": f"system:serviceaccount:{':'.join(KUBEADM)}",
    },
    {"kind": "ServiceAccount", "name": KUBEADM[1], "namespace": KUBEADM[0]},
]
VARIABLE = re.compile(r"(?<!\$)\$\{([A-Z0-9_]+):=([^}]*)\}")


def newest(repository: Repository) -> tuple[str, str]:
    """Return the version of a release of the newest series, and its contract."""
    metadata = yaml.safe_load((repository.folder / "metadata.yaml").read_text(encoding="utf-8"))
    series = max(metadata["releaseSeries"], key=lambda s: (s["major"], s["minor"]))
    return f"v{series['major']}.{series['minor']}.3", series["contract"]


@pytest.fixture(scope="session")
def released(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a release, to which no test writes."""
    version, _ = newest(repository)
    out = tmp_path_factory.mktemp("released")
    repository.run("make", "release-manifests", f"VERSION={version}", f"OUT={out}")
    return out


def components(released: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the type and the objects of each component."""
    for path in sorted(released.glob("*-components.yaml")):
        text = VARIABLE.sub(r"\2", path.read_text(encoding="utf-8"))
        objects = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
        yield path.name.removesuffix("-components.yaml"), objects


def deployments(released: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the only Deployment of each component, with its type."""
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
    combined = described.get("components", {}).items()
    joined = {part for main, parts in combined for part in parts if part != main}
    parts = {f"{TYPES[key]}-components.yaml" for key in described if key in TYPES.keys() - joined}

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
            if not binding["metadata"]["name"].endswith(KUBEADM_BINDING):
                assert ("ServiceAccount", binding["subjects"][0]["name"]) in there
        for binding in of_kind(objects, "ValidatingAdmissionPolicyBinding"):
            assert ("ValidatingAdmissionPolicy", binding["spec"]["policyName"]) in there
        (deployment,) = of_kind(objects, "Deployment")
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        assert ("ServiceAccount", account) in there


def test_kubeadm_s_bootstrap_manager_may_get_control_planes_and_no_more(
    repository: Repository, released: Path
) -> None:
    """Proves: RB-11."""
    spec = yaml.safe_load((repository.folder / "provider.yaml").read_text(encoding="utf-8"))
    expected = {
        kind
        for kind, each in spec.get("controlPlane", {}).items()
        if each["implements"] == "ControlPlane"
    }
    reached = set()
    for _, objects in components(released):
        bindings = [
            each
            for each in of_kind(objects, "ClusterRoleBinding")
            if each["metadata"]["name"].endswith(KUBEADM_BINDING)
        ]
        crds = {
            (each["spec"]["group"], each["spec"]["names"]["plural"]): each["spec"]["names"]["kind"]
            for each in of_kind(objects, "CustomResourceDefinition")
        }
        for binding in bindings:
            assert binding["subjects"] == KUBEADM_SUBJECTS
            (role,) = (
                each
                for each in of_kind(objects, "ClusterRole")
                if each["metadata"]["name"] == binding["roleRef"]["name"]
            )
            assert all(rule["verbs"] == ["get"] for rule in role["rules"])
            reached |= {
                crds[group, resource]
                for rule in role["rules"]
                for group in rule["apiGroups"]
                for resource in rule["resources"]
            }
    assert reached == expected


def test_selectors_carry_the_provider_label(released: Path) -> None:
    """Proves: CC-26."""
    for _, deployment in deployments(released):
        label = deployment["metadata"]["labels"]["cluster.x-k8s.io/provider"]

        assert deployment["spec"]["selector"]["matchLabels"]["cluster.x-k8s.io/provider"] == label


def test_the_arguments_are_flags_of_the_manager(repository: Repository, released: Path) -> None:
    everything = deployments(released)
    types = [type for type, _ in everything]
    own = f"{repository.package}._generated.manager"
    code = (
        "import sys; from importlib import import_module; from importlib.util import find_spec\n"
        "from capsmith_runtime.options import parse\n"
        f"extras = [import_module({own!r}).FLAGS] if find_spec({own!r}) else []\n"
        f"print(parse(sys.argv[1:], {types}, extras))"
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
    manifests: list[Manifest] = []
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
