"""Evaluation as a whole: what belongs together, which contract is meant, which role a kind has."""

from __future__ import annotations

from collections.abc import Mapping

from capsmith import resources
from capsmith.contract.load import load_contract
from capsmith.findings import Finding
from capsmith.judge.checks.evaluate import evaluate_manifests
from capsmith.manifests.parse import Manifest, parse_manifests

METADATA = """\
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries: [{major: 0, minor: %d, contract: v1beta2}]
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: acme-system}\n"


def crd(kind: str, labels: str, group: str = "infrastructure.example.com") -> str:
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {kind.lower()}s.{group}
  labels: {labels}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: {kind}, plural: {kind.lower()}s}}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object}}}}
"""


def found(
    files: dict[str, str], version: str = "v1beta2", **options: Mapping[str, str]
) -> list[Finding]:
    manifests: list[Manifest] = []
    for name, text in files.items():
        parsed, broken = parse_manifests(text, name)
        assert broken == ()
        manifests.extend(parsed)
    contract = load_contract(version, resources.schemas())
    return list(evaluate_manifests(manifests, contract, **options))


def ids(findings: list[Finding]) -> set[str]:
    return {finding.id for finding in findings}


def test_nothing_is_wrong_with_nothing() -> None:
    assert found({}) == []


def test_other_yaml_is_left_alone() -> None:
    workflow = 'on: push\njobs: {test: {name: "${{ matrix.python }}"}}\n'
    assert found({".github/workflows/ci.yaml": workflow, "provider.yaml": "name: acme\n"}) == []


def test_each_release_folder_stands_for_itself() -> None:
    files = {
        "v0.1.0/infrastructure-components.yaml": NAMESPACE,
        "v0.1.0/metadata.yaml": METADATA % 1,
        "v0.2.0/infrastructure-components.yaml": NAMESPACE,
    }
    findings = found(files)
    assert [(f.id, f.location.file) for f in findings] == [
        ("CC-01", "v0.2.0/infrastructure-components.yaml")
    ]


def test_with_components_the_source_is_not_looked_at() -> None:
    source = crd("AcmeMachine", "{}")
    assert "GEN-01" in ids(found({"crd.yaml": source}))
    files = {
        "crd.yaml": source,
        "out/infrastructure-components.yaml": NAMESPACE,
        "metadata.yaml": METADATA % 1,
    }
    assert found(files) == []


def test_samples_are_not_installed() -> None:
    assert "CC-22" not in ids(
        found({"config/samples/a.yaml": NAMESPACE, "config/samples/b.yaml": NAMESPACE})
    )


def test_a_kind_is_judged_by_the_contract_of_its_label() -> None:
    one = {"crd.yaml": crd("AcmeMachine", "{cluster.x-k8s.io/v1beta1: v1alpha1}")}
    assert {"IM-02", "IM-04"} <= ids(found(one, "v1beta1"))
    other = ids(found(one, "v1beta2"))
    assert "GEN-01" in other
    assert not other & {"IM-01", "IM-03"}


def test_the_shape_of_a_kind_without_label_is_checked_too() -> None:
    assert {"GEN-01", "IM-01", "IM-03"} <= ids(found({"crd.yaml": crd("AcmeMachine", "{}")}))


def test_roles_are_guessed_from_kinds_and_can_be_given() -> None:
    label = "{cluster.x-k8s.io/v1beta2: v1alpha1}"
    odd = {"crd.yaml": crd("AcmeServer", label)}
    assert "IM-01" not in ids(found(odd))
    roles = {"acmeservers.infrastructure.example.com": "InfraMachine"}
    assert "IM-01" in ids(found(odd, roles=roles))
    plain = crd("AcmeMachine", label, "example.com")
    assert "IM-01" not in ids(found({"crd.yaml": plain}))
    template = crd("AcmeMachineTemplate", label, "example.com")
    assert "IM-01" in ids(found({"crd.yaml": plain + "---\n" + template}))
    core = crd("Machine", label, "cluster.x-k8s.io")
    assert "IM-01" not in ids(found({"crd.yaml": core}))


def test_findings_come_in_the_order_of_reading_and_once() -> None:
    text = crd("AcmeMachine", "{}") + "---\n" + crd("AcmeCluster", "{}")
    findings = found({"b.yaml": text, "a.yaml": NAMESPACE + "---\n" + NAMESPACE})
    keys = [finding.sort_key for finding in findings]
    assert keys == sorted(set(keys))


def test_metadata_of_other_programs_are_left_alone() -> None:
    other = "apiVersion: metadata.example.com/v1\nversions: {kubernetes: v1.35.0}\n"
    plain = "name: acme\ninstallOrder: 30\n"
    files = {"crd.yaml": NAMESPACE, "stacks/a/metadata.yaml": other, "b/metadata.yaml": plain}
    assert not ids(found(files)) & {"CC-02", "CC-04", "CC-11"}
    # clusterctl reads the file beside the components, whatever it contains.
    beside = {"infrastructure-components.yaml": NAMESPACE, "metadata.yaml": other}
    assert {"CC-02", "CC-04", "CC-11"} <= ids(found(beside))
    for text in ("kind: Metadata\n", "releaseSeries: []\n"):
        assert "CC-02" in ids(found({"crd.yaml": NAMESPACE, "metadata.yaml": text}))


def test_an_inventory_of_components_is_no_components_file() -> None:
    inventory = "components:\n- {name: acme, repository: https://example.com}\n"
    files = {"infrastructure-components.yaml": NAMESPACE, "metadata.yaml": METADATA % 1}
    assert found({**files, "components.yaml": inventory}) == []
    assert "CC-20" in ids(found({"components.yaml": NAMESPACE}))
    assert "CC-81" in ids(found({"infrastructure-components.yaml": "metadata: {name: a}\n"}))


def test_metadata_of_another_name_are_not_read() -> None:
    files = {"infrastructure-components.yaml": NAMESPACE, "metadata.yml": METADATA % 1}
    assert "CC-01" in ids(found(files))
    moved = {"out/infrastructure-components.yaml": NAMESPACE, "config/release.yaml": METADATA % 1}
    assert "CC-01" not in ids(found(moved))
