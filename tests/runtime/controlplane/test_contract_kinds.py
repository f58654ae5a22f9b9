"""Versions of external kinds, by the contract labels of their CRDs; names of Machines."""

from __future__ import annotations

from typing import Any, cast

import pytest

from capsmith_runtime.controlplane.external_objects import ContractKinds
from capsmith_runtime.kube.client import KubeClient, ResourceType
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.results import NotAvailableError


def _crd(kind: str, labels: dict[str, str], served: tuple[str, ...]) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    versions: list[dict[str, Any]] = [
        {"name": name, "served": name in served, "schema": {}} for name in ("v1", "v2beta1")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.foo.com", "uid": kind, "resourceVersion": "1"}
        | {"labels": {f"cluster.x-k8s.io/{key}": value for key, value in labels.items()}},
        "spec": {
            "group": "foo.com",
            "names": {"kind": kind, "plural": plural},
            "versions": versions,
        },
    }


def _resolve(core: str, labels: dict[str, str], served: tuple[str, ...]) -> ResourceType:
    kinds = ContractKinds(cast(KubeClient, None), Metrics(), core)
    for contract, informer in kinds._informers.items():
        if contract in labels:
            crd = informer._cache.project(_crd("FooMachineTemplate", labels, served))
            informer._cache.observe(crd)
    return kinds.resolve("foo.com", "FooMachineTemplate")


@pytest.mark.parametrize(
    ("core", "labels", "served", "version"),
    [
        ("v1beta2", {"v1beta2": "v1"}, ("v1",), "v1"),
        ("v1beta2", {"v1beta1": "v1", "v1beta2": "v2beta1"}, ("v1", "v2beta1"), "v2beta1"),
        ("v1beta1", {"v1beta1": "v1", "v1beta2": "v2beta1"}, ("v1", "v2beta1"), "v1"),
        ("v1beta2", {"v1beta1": "v1"}, ("v1",), "v1"),
        ("v1beta2", {"v1beta2": "v2beta1_v1"}, ("v1", "v2beta1"), "v1"),
        ("v1beta2", {"v1beta2": "v1_v2beta1"}, ("v2beta1",), "v2beta1"),
        ("v1beta2", {"v1beta2": "v1", "v1beta1": "v2beta1"}, ("v2beta1",), "v2beta1"),
    ],
)
def test_contract_labels_select_the_version(
    core: str, labels: dict[str, str], served: tuple[str, ...], version: str
) -> None:
    """Proves: GEN-01, GEN-02, GEN-03, GEN-10, RB-08."""
    found = _resolve(core, labels, served)

    assert found == ResourceType("foo.com", version, "FooMachineTemplate", "foomachinetemplates")


@pytest.mark.parametrize(
    ("core", "labels", "served"),
    [
        ("v1beta2", {}, ("v1",)),
        ("v1beta1", {"v1beta2": "v1"}, ("v1",)),
        ("v1beta2", {"v1beta2": "v1"}, ()),
    ],
)
def test_a_kind_without_a_contract_label_is_not_available(
    core: str, labels: dict[str, str], served: tuple[str, ...]
) -> None:
    """Proves: GEN-01, GEN-02."""
    with pytest.raises(NotAvailableError, match="ContractVersionNotFound"):
        _resolve(core, labels, served)
