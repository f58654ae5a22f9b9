from __future__ import annotations

import json

import pytest

from capsmith.manifests.kustomize import MAX_COPIES, build
from capsmith.manifests.parse import Manifest, parse_manifests

FILES = {
    "config/default/kustomization.yaml": """\
namespace: acme-system
namePrefix: acme-system-
labels:
- includeSelectors: true
  pairs: {cluster.x-k8s.io/provider: infrastructure-acme}
images:
- {name: controller, newName: ghcr.io/acme/controller, newTag: v1}
resources: [namespace.yaml, ../rbac, ../manager, ../crd]
patches:
- path: patch.yaml
""",
    "config/default/patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: patch}\n",
    "config/default/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: system}\n",
    "config/manager/kustomization.yaml": "resources: [manager.yaml]\n",
    "config/manager/manager.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: system}
spec:
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec:
      serviceAccountName: manager
      containers: [{name: manager, image: "controller:latest"}]
""",
    "config/rbac/kustomization.yaml": "resources: [account.yaml, role.yaml]\n",
    "config/rbac/account.yaml": """\
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: system}
""",
    "config/rbac/role.yaml": """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: role}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: binding}
roleRef: {kind: ClusterRole, name: role}
subjects:
- {kind: ServiceAccount, name: manager, namespace: system}
- {kind: ServiceAccount, name: stranger, namespace: other}
""",
    "config/crd/kustomization.yaml": """\
commonLabels: {cluster.x-k8s.io/v1beta2: v1alpha1}
resources: [bases/crd.yaml]
""",
    "config/crd/bases/crd.yaml": """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: acmemachines.example.com}
spec: {group: example.com}
""",
    "elsewhere.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: elsewhere}\n",
}


def parsed(files: dict[str, str]) -> list[Manifest]:
    return [m for name, text in files.items() for m in parse_manifests(text, name)[0]]


def by_kind(files: dict[str, str]) -> dict[str, Manifest]:
    return {manifest.kind: manifest for manifest in build(parsed(files))}


def test_names_namespaces_and_references() -> None:
    built = by_kind(FILES)
    assert built["Namespace"].name == "acme-system"
    assert built["Deployment"].name == "acme-system-manager"
    assert built["Deployment"].mapping("metadata")["namespace"] == "acme-system"
    assert built["ClusterRole"].name == "acme-system-role"
    assert "namespace" not in built["ClusterRole"].mapping("metadata")
    binding = built["ClusterRoleBinding"]
    assert binding.mapping("roleRef")["name"] == "acme-system-role"
    assert [subject["name"] for subject in binding.listing("subjects")] == [
        "acme-system-manager",
        "stranger",
    ]
    assert [subject["namespace"] for subject in binding.listing("subjects")] == [
        "acme-system",
        "other",
    ]
    pod = built["Deployment"].mapping("spec", "template", "spec")
    assert pod["serviceAccountName"] == "acme-system-manager"
    assert built["CustomResourceDefinition"].name == "acmemachines.example.com"


@pytest.mark.parametrize(
    ("subject", "built"),
    [
        ({"name": "manager", "namespace": "system"}, ("acme-system-manager", "acme-system")),
        ({"name": "manager"}, ("acme-system-manager", "acme-system")),
        ({"name": "manager", "namespace": "other"}, ("manager", "other")),
        ({"name": "stranger", "namespace": "system"}, ("stranger", "system")),
        ({"name": "default", "namespace": "other"}, ("default", "acme-system")),
    ],
    ids=str,
)
def test_only_service_accounts_of_the_build_are_followed(
    subject: dict[str, str], built: tuple[str, str]
) -> None:
    """As kustomize does, which takes subjects called default for the manager's as well."""
    entry = json.dumps({"kind": "ServiceAccount", **subject})
    roles = FILES["config/rbac/role.yaml"].partition("subjects:")[0] + f"subjects: [{entry}]\n"
    binding = by_kind({**FILES, "config/rbac/role.yaml": roles})["ClusterRoleBinding"]
    (found,) = binding.listing("subjects")
    assert (found["name"], found["namespace"]) == built


def test_labels() -> None:
    built = by_kind(FILES)
    provider = {"cluster.x-k8s.io/provider": "infrastructure-acme"}
    assert built["CustomResourceDefinition"].mapping("metadata", "labels") == {
        "cluster.x-k8s.io/v1beta2": "v1alpha1",
        **provider,
    }
    deployment = built["Deployment"]
    assert deployment.mapping("metadata", "labels") == provider
    both = {"app": "manager", **provider}
    assert deployment.mapping("spec", "selector", "matchLabels") == both
    assert deployment.mapping("spec", "template", "metadata", "labels") == both


def test_labels_without_selectors() -> None:
    default = FILES["config/default/kustomization.yaml"].replace("includeSelectors", "idle")
    deployment = by_kind({**FILES, "config/default/kustomization.yaml": default})["Deployment"]
    assert deployment.mapping("metadata", "labels")
    assert deployment.mapping("spec", "selector", "matchLabels") == {"app": "manager"}


def patched(**entry: object) -> Manifest:
    """Return the Deployment with one more patch in the topmost kustomization."""
    text = FILES["config/default/kustomization.yaml"] + f"- {json.dumps(entry)}\n"
    return by_kind({**FILES, "config/default/kustomization.yaml": text})["Deployment"]


PATCH = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, labels: {own: label}}
spec:
  selector: null
  template:
    spec:
      containers:
      - {name: manager, args: [--v=2]}
      - {name: side, image: ghcr.io/acme/side:v1}
"""


def test_merge_patches() -> None:
    deployment = patched(patch=PATCH)
    assert deployment.mapping("metadata", "labels")["own"] == "label"
    assert deployment.name == "acme-system-manager"
    assert "selector" not in deployment.mapping("spec")
    manager, side = deployment.listing("spec", "template", "spec", "containers")
    assert manager == {"name": "manager", "image": "ghcr.io/acme/controller:v1", "args": ["--v=2"]}
    assert side["name"] == "side"


def test_patches_for_others_change_nothing() -> None:
    plain = by_kind(FILES)["Deployment"].document
    assert (
        patched(patch=PATCH.replace("name: manager, labels", "name: other, labels")).document
        == plain
    )
    assert patched(patch=PATCH, target={"kind": "Service"}).document == plain
    assert patched(patch=PATCH, target={"kind": "Deployment", "name": "x.*"}).document == plain
    assert patched(patch=PATCH, target={"name": "("}).document == plain
    assert patched(patch='[{"op": "remove", "path": "/spec"}]').document == plain


@pytest.mark.parametrize(
    "target",
    [
        {"kind": "Deployment", "name": "man.*"},
        {"group": "apps", "version": "v1", "kind": "Deployment|StatefulSet"},
    ],
)
def test_patches_by_target(target: dict[str, str]) -> None:
    deployment = patched(patch=PATCH, target=target)
    assert deployment.mapping("metadata", "labels")["own"] == "label"


@pytest.mark.parametrize(
    "target", [{"group": "batch"}, {"version": "v2"}, {"group": "app"}, {"labelSelector": "own"}]
)
def test_patches_by_another_target(target: dict[str, str]) -> None:
    deployment = patched(patch=PATCH, target={"kind": "Deployment", **target})
    assert deployment.document == by_kind(FILES)["Deployment"].document


def test_patches_in_files() -> None:
    patches = {"config/default/patch.yaml": PATCH}
    new = by_kind({**FILES, **patches})["Deployment"]
    assert new.mapping("metadata", "labels")["own"] == "label"
    old = FILES["config/default/kustomization.yaml"].replace(
        "patches:\n- path: patch.yaml", "patchesStrategicMerge: [patch.yaml]"
    )
    former = by_kind({**FILES, **patches, "config/default/kustomization.yaml": old})["Deployment"]
    assert former.document == new.document


def test_images() -> None:
    pod = by_kind(FILES)["Deployment"].mapping("spec", "template", "spec")
    assert pod["containers"][0]["image"] == "ghcr.io/acme/controller:v1"


def test_places_stay_those_of_the_source_and_the_source_stays() -> None:
    source = parsed(FILES)
    built = build(source)
    assert {m.file for m in built} == {
        name for name in FILES if "kustomization" not in name and "patch" not in name
    }
    assert next(m for m in source if m.kind == "ClusterRole").name == "role"


def test_a_ring_of_kustomizations_ends() -> None:
    ring = {
        "a/kustomization.yaml": "resources: [../b, x.yaml]\n",
        "b/kustomization.yaml": "resources: [../a]\n",
        "c/kustomization.yaml": "resources: [../a]\nnamePrefix: p-\n",
        "a/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
    }
    assert [manifest.name for manifest in build(parsed(ring))] == ["p-x"]


def test_without_kustomizations_nothing_changes() -> None:
    source = parsed({"x.yaml": FILES["config/manager/manager.yaml"]})
    assert build(source) == tuple(source)


def test_absolute_paths_that_no_kustomization_covers_are_kept() -> None:
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: system}\n"
    manifests, _ = parse_manifests(text, "/repository/config/namespace.yaml")
    assert build(manifests) == manifests


DOUBLED = 40
"""Levels of kustomizations that each name the next ones twice: 2**40 paths."""


def _levels(names: str, *, prefixes: bool = False) -> dict[str, str]:
    files = {"leaf/thing.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\n"}
    for level in range(DOUBLED):
        below = [f"../{name}{level + 1}" for name in names] if level + 1 < DOUBLED else ["../leaf"]
        for name in names:
            prefix = f"namePrefix: {name}-\n" if prefixes else ""
            text = f"{prefix}resources: {json.dumps(below)}\n"
            files[f"{name}{level}/kustomization.yaml"] = text
    return files | {"leaf/kustomization.yaml": "resources: [thing.yaml]\n"}


def test_kustomizations_that_name_each_other_twice_are_built_in_limited_time() -> None:
    files = _levels("ab") | {"top/kustomization.yaml": "resources: [../a0, ../b0]\n"}
    found = build(parsed(files))

    assert {manifest.name for manifest in found} == {"thing"}
    assert len(found) <= MAX_COPIES


def test_the_number_of_renamed_copies_is_limited() -> None:
    files = _levels("ab", prefixes=True) | {"top/kustomization.yaml": "resources: [../a0, ../b0]\n"}
    found = build(parsed(files))

    assert 2 <= len({manifest.name for manifest in found}) <= MAX_COPIES


def test_each_of_two_variants_of_a_base_has_its_copy() -> None:
    files = {
        "top/kustomization.yaml": "resources: [../a, ../b]\n",
        "a/kustomization.yaml": "namePrefix: a-\nresources: [../leaf]\n",
        "b/kustomization.yaml": "namePrefix: b-\nresources: [../leaf]\n",
        "leaf/kustomization.yaml": "resources: [thing.yaml]\n",
        "leaf/thing.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\n",
    }
    assert sorted(manifest.name for manifest in build(parsed(files))) == ["a-thing", "b-thing"]


def test_a_chain_of_kustomizations_may_be_longer_than_the_stack() -> None:
    files = {
        f"f{level}/kustomization.yaml": f"resources: [../f{level + 1}]\n" for level in range(3000)
    }
    files["f3000/kustomization.yaml"] = "resources: [thing.yaml]\n"
    files["f3000/thing.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\n"
    (found,) = build(parsed(files))
    assert found.name == "thing"


def test_kustomizations_that_name_each_other_end() -> None:
    files = {
        "top/kustomization.yaml": "resources: [../a]\n",
        "a/kustomization.yaml": "resources: [../b, thing.yaml]\n",
        "b/kustomization.yaml": "resources: [../a]\n",
        "a/thing.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\n",
    }
    (found,) = build(parsed(files))
    assert found.name == "thing"


_WEBHOOKS = """\
apiVersion: v1
kind: Service
metadata: {name: webhook, namespace: system}
---
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: system}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validation}
webhooks:
- {name: a, clientConfig: {service: {name: webhook, namespace: system}}}
- {name: b, clientConfig: {service: {name: webhook, namespace: other}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec: {conversion: {webhook: {clientConfig: {service: {name: webhook, namespace: system}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: system}
spec:
  template:
    spec:
      initContainers: [{name: i, image: "reg:5000/controller@sha256:aa"}]
      containers: [{name: m, image: controller}, {name: n, image: "controller:v1@sha256:aa"}]
      volumes: [{name: a, secret: {secretName: keys}}, {name: b, secret: {secretName: others}}]
"""


@pytest.mark.parametrize("configured", ["", "configurations: [kustomizeconfig.yaml]\n"])
def test_references_follow_what_is_renamed(configured: str) -> None:
    kustomization = """\
namespace: acme-system
namePrefix: acme-
resources: [all.yaml]
images:
- {name: controller, newTag: v2}
- {name: "reg:5000/controller", newName: ghcr.io/acme/controller}
patches:
- patch: |
    apiVersion: v1
    kind: Secret
    metadata: {name: keys, annotations: {a: null, b: "1"}}
"""
    files = {"kustomization.yaml": kustomization + configured, "all.yaml": _WEBHOOKS}
    manifests = [each for name, text in files.items() for each in parse_manifests(text, name)[0]]
    _, secret, validation, crd, deployment = build(manifests)
    services = [each["clientConfig"]["service"] for each in validation.listing("webhooks")]
    renamed = {"name": "acme-webhook", "namespace": "acme-system"}
    assert services == [renamed, {"name": "webhook", "namespace": "other"}]
    assert crd.mapping("spec", "conversion", "webhook", "clientConfig", "service") == {
        "name": "acme-webhook" if configured else "webhook",
        "namespace": "acme-system",
    }
    assert secret.mapping("metadata", "annotations") == {"b": "1"}
    pod = deployment.mapping("spec", "template", "spec")
    images = [each["image"] for each in (*pod["initContainers"], *pod["containers"])]
    assert images == ["ghcr.io/acme/controller@sha256:aa", "controller:v2", "controller:v2"]
    names = [each["secret"]["secretName"] for each in pod["volumes"]]
    assert names == ["acme-keys", "others"]
