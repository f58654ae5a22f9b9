"""Checks whose results are shared by contracts read nothing that depends on the contract."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from capsmith.commands.load import load_contracts
from capsmith.contract.core_kinds import CoreKinds, KubernetesKinds
from capsmith.contract.model import Contract, Rule
from capsmith.judge.checks.evaluate import find_violations
from capsmith.judge.checks.registry import NoParams, SharedResults, Violation, bind, list_checks
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.parse import parse_manifests

_COMPONENTS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: acmemachines.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  scope: Somewhere
  names: {kind: AcmeMachine, plural: acmemachines, singular: acmemachine, listKind: AcmeMachineList}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-validations: [{rule: "self.spec.size >"}]
        properties:
          spec: {type: object, properties: {size: {type: integer, minimum: 0.5, default: x}}}
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: acme}
spec:
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: acme}}
    spec: {serviceAccountName: absent, containers: [{name: manager}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader, namespace: acme}
roleRef: {kind: Role, name: absent}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving, namespace: acme}
spec: {secretName: serving, issuerRef: {name: absent}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validation}
webhooks:
- name: one
  clientConfig: {service: {name: absent, namespace: acme}}
  rules:
  - {apiGroups: [infrastructure.cluster.x-k8s.io], apiVersions: [v9], resources: [acmemachines]}
"""
_COMPONENTS += """\
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: acmepools.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  scope: Cluster
  names: {kind: AcmePool, plural: acmepools, singular: acmepool, listKind: AcmePoolList}
  versions:
  - {name: v1, served: false, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: rbac.authorization.k8s.io/v1beta1
kind: ClusterRole
metadata: {name: old}
---
apiVersion: rbac.authorization.k8s.io/v1beta1
kind: ClusterRole
metadata: {name: old, labels: {a: b}}
"""
_TEMPLATE = """\
# ${COMMENTED}
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AcmeMachine
metadata: {name: "${NAME-default}", labels: {a: "${EMPTY:=}"}}
spec: {unknown: 1}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AcmeThing
metadata: {name: thing}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: class}
spec:
  variables: [{name: a.b}]
  patches: [{name: one, definitions: [{jsonPatches: [{valueFrom: {variable: absent}}]}]}]
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: cluster}
spec:
  infrastructureRef:
    {apiGroup: infrastructure.cluster.x-k8s.io, kind: AcmeThing, name: absent}
  topology: {classRef: {name: class}, variables: [{name: absent, value: 1}]}
"""
_SHARED = sorted(name for name, each in list_checks().items() if each.is_shared)


@dataclass(frozen=True)
class _CoreKinds:
    """What all contracts have alike."""

    core_kinds: CoreKinds
    kubernetes_kinds: KubernetesKinds


@dataclass(frozen=True)
class _BundleOnly:
    """A context that has no rule, and of the contract only what all contracts have alike."""

    bundle: Bundle
    contract: _CoreKinds


def _bundle() -> Bundle:
    files = {"infrastructure-components.yaml": _COMPONENTS, "cluster-template.yaml": _TEMPLATE}
    found = [each for file, text in files.items() for each in parse_manifests(text, file)[0]]
    return Bundle(tuple(found), {})


def _rules(name: str) -> list[tuple[Contract, Rule]]:
    return [
        (contract, rule)
        for contract in load_contracts()
        for rule in contract.rules.values()
        if rule.check is not None and rule.check.name == name
    ]


def _run(rule: Rule, bundle: Bundle) -> list[Violation]:
    assert rule.check is not None
    named = list_checks()[rule.check.name]
    params = () if named.params is NoParams else (bind(named.params, rule.check.params),)
    contract = load_contracts()[0]
    kinds = _CoreKinds(contract.core_kinds, contract.kubernetes_kinds)
    context: Any = _BundleOnly(bundle, kinds)
    return list(named.run(context, *params))


@pytest.mark.parametrize("name", _SHARED)
def test_a_shared_check_reads_the_bundle_alone_and_not_what_core_uses(name: str) -> None:
    bundle = _bundle()
    judged = replace(bundle, judged={bundle.crds[0].manifest.name: "v1alpha1"})
    for _, rule in _rules(name):
        found = _run(rule, bundle)
        assert found, f"nothing here violates {rule.id}"
        assert _run(rule, judged) == found
        assert _run(rule, replace(bundle, judged={})) == found


def test_results_of_shared_checks_are_kept_for_the_next_contract() -> None:
    bundle, shared = _bundle(), SharedResults()
    (old, rule), *_, (new, again) = _rules("crd-structural")
    found = find_violations(rule, bundle, old, shared)
    assert found
    assert find_violations(again, bundle, new, shared) is found


def test_results_of_other_checks_are_not_kept() -> None:
    shared = SharedResults()
    (contract, rule), *_ = _rules("schema-plain-names")
    list(find_violations(rule, _bundle(), contract, shared))
    assert not shared.violations
