"""The Secret with bootstrap data, the init lock, and the status of configurations."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from capsmith_runtime.bootstrap.api import MAX_DOCUMENT_BYTES, BootstrapDocument
from capsmith_runtime.contract.bootstrap import (
    UNINITIALIZED_TAINT,
    DataContent,
    Ownership,
    Taint,
    V1Beta1BootstrapStatus,
    V1Beta2BootstrapStatus,
    add_owner,
    build_controller_reference,
    build_data_secret,
    build_init_lock,
    find_ownership,
    init_lock_holder,
    is_updating_in_place,
    read_data_secret,
)
from capsmith_runtime.reconcile.results import NotAvailableError
from capsmith_runtime.testing.bootstrap import bootstrap_config, pool_bootstrap_config
from capsmith_runtime.testing.bootstrap.certificates import certificate_of
from capsmith_runtime.testing.core import core_cluster

OLD, NEW = V1Beta1BootstrapStatus(), V1Beta2BootstrapStatus()
GROUP = "bootstrap.cluster.x-k8s.io"
CONFIG: dict[str, Any] = {
    "apiVersion": f"{GROUP}/v1alpha1",
    "kind": "AcmeConfig",
    "metadata": {"name": "m1", "namespace": "ns", "uid": "u1"},
}
CONTENT = DataContent(
    value=b"\x1f\x8b data",
    format="ignition",
    refresh_at="2030-01-01T00:00:00Z",
    inputs="abc",
    certificates_expiry="2031-01-01T00:00:00Z",
)
OWNER = build_controller_reference(CONFIG)


def test_a_secret_holds_the_whole_content() -> None:
    """Proves: BC-06, SEC-04."""
    secret = build_data_secret(CONFIG, "c", CONTENT)

    assert read_data_secret(secret, CONFIG) == CONTENT
    assert find_ownership(secret, CONFIG, "c") is Ownership.OURS
    assert base64.b64decode(secret["data"]["value"]) == CONTENT.value
    assert secret["metadata"]["ownerReferences"] == [OWNER]


def test_a_minimal_secret_has_no_annotations_and_the_default_format() -> None:
    secret = build_data_secret(CONFIG, "c", DataContent(value=b"x", format="cloud-config"))
    assert secret["metadata"]["annotations"] == {}

    del secret["data"]["format"]
    assert read_data_secret(secret, CONFIG).format == "cloud-config"


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        ([OWNER], Ownership.OURS),
        ([{**OWNER, "apiVersion": f"{GROUP}/v1"}], Ownership.OURS),
        ([{**OWNER, "uid": "u0"}], Ownership.FORMER),
        ([{**OWNER, "name": "m2"}], Ownership.FOREIGN),
        ([{**OWNER, "kind": "Other"}], Ownership.FOREIGN),
        ([{**OWNER, "apiVersion": "other.example.com/v1alpha1"}], Ownership.FOREIGN),
        ([{**OWNER, "kind": "Other", "controller": False}], Ownership.UNOWNED),
        ([], Ownership.UNOWNED),
    ],
)
def test_ownership_of_a_secret(owners: list[dict[str, Any]], expected: Ownership) -> None:
    """Proves: BC-06."""
    secret = build_data_secret(CONFIG, "c", CONTENT)
    secret["metadata"]["ownerReferences"] = owners

    assert find_ownership(secret, CONFIG, "c") is expected


@pytest.mark.parametrize(
    "change", [{"type": "Opaque"}, {"data": {"other": "eA=="}}, {"metadata": {"name": "m1"}}]
)
def test_a_secret_of_another_kind_is_foreign(change: dict[str, Any]) -> None:
    secret = build_data_secret(CONFIG, "c", CONTENT)
    secret["metadata"]["ownerReferences"] = []

    assert find_ownership({**secret, **change}, CONFIG, "c") is Ownership.FOREIGN


def test_a_restored_owner_replaces_the_former_one() -> None:
    other = {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "y"}
    secret = {"metadata": {"ownerReferences": [{**OWNER, "uid": "u0"}, other]}}

    assert add_owner(secret, CONFIG) == [other, OWNER]


def test_both_contracts_write_name_and_flag_together() -> None:
    """Proves: BC-01, BC-02, BC-03, BC-04."""
    before = {"status": {"kept": 1, "initialization": {"other": True}}}

    assert NEW.build_created_status(before, "m1", {"image": "i", "gone": None}, set()) == {
        "kept": 1,
        "initialization": {"other": True, "dataSecretCreated": True},
        "dataSecretName": "m1",
        "image": "i",
    }
    assert OLD.build_created_status({}, "m1", {}, set()) == {"ready": True, "dataSecretName": "m1"}
    kept = NEW.build_created_status({}, "m1", {}, {"ready"})
    assert kept["ready"] is kept["initialization"]["dataSecretCreated"] is True


@pytest.mark.parametrize(
    ("writer", "status", "expected"),
    [
        (NEW, {"initialization": {"dataSecretCreated": True}, "dataSecretName": "m1"}, True),
        (NEW, {"initialization": {"dataSecretCreated": True}}, False),
        (NEW, {"initialization": {"dataSecretCreated": True}, "dataSecretName": ""}, False),
        (NEW, {"ready": True, "dataSecretName": "m1"}, False),
        (OLD, {"ready": True, "dataSecretName": "m1"}, True),
        (OLD, {"dataSecretName": "m1"}, False),
        (OLD, {}, False),
    ],
)
def test_created_needs_flag_and_name(writer: Any, status: dict[str, Any], expected: bool) -> None:
    assert writer.is_created({"status": status}) is expected


def test_the_cluster_owns_the_lock() -> None:
    """Proves: BC-12."""
    lock = build_init_lock(core_cluster("c"), "v1beta2", "m1")

    assert lock["metadata"]["name"] == "c-lock"
    (owner,) = lock["metadata"]["ownerReferences"]
    assert owner["apiVersion"] == "cluster.x-k8s.io/v1beta2"
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Cluster", "c", "uid-of-c")
    # Deleting the Cluster must not need a permission on it that bootstrap providers lack.
    assert "blockOwnerDeletion" not in owner
    assert init_lock_holder(lock) == "m1"


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"lock-information": "no json"},
        {"lock-information": "[]"},
        {"lock-information": "[" * 100_000},
        {"other": "{}"},
    ],
    ids=lambda data: str(data)[:30],
)
def test_other_config_maps_have_no_holder(data: dict[str, str]) -> None:
    assert init_lock_holder({"data": data}) is None


def test_taints_as_the_kubelet_reads_them() -> None:
    """Proves: BC-14."""
    assert str(UNINITIALIZED_TAINT) == "node.cluster.x-k8s.io/uninitialized:NoSchedule"
    assert str(Taint("a", "NoExecute", "b")) == "a=b:NoExecute"


@pytest.mark.parametrize(
    "make",
    [
        lambda: BootstrapDocument(b""),
        lambda: BootstrapDocument(b"x" * (MAX_DOCUMENT_BYTES + 1)),
        lambda: BootstrapDocument(b"x", "no format"),
        lambda: BootstrapDocument(b"x", refresh_after=0),
        lambda: BootstrapDocument(b"x", certificates_expiry=datetime(2030, 1, 1)),
    ],
)
def test_invalid_documents_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"must|format|time zone"):
        make()


def test_text_is_refused() -> None:
    """Data may be compressed, and text has no encoding."""
    with pytest.raises(TypeError, match="bytes"):
        BootstrapDocument("#cloud-config\n")  # type: ignore[arg-type] # the wrong one is meant


def test_the_repr_of_a_document_hides_its_value() -> None:
    """Logs and conditions show results of reconcilers."""
    document = BootstrapDocument(b"a token", certificates_expiry=datetime(2030, 1, 1, tzinfo=UTC))
    assert "token" not in repr(document)


def test_an_unknown_endpoint_is_waited_for() -> None:
    config = bootstrap_config(object())
    assert config.endpoint.port == 6443

    unknown = replace(config, cluster=core_cluster())
    with pytest.raises(NotAvailableError, match="WaitingForControlPlaneEndpoint"):
        _ = unknown.endpoint


def test_scopes_have_roles_taints_and_certificates() -> None:
    worker, pool = bootstrap_config(object()), pool_bootstrap_config(object())
    first = bootstrap_config(object(), is_control_plane=True, is_first=True)

    assert (first.is_control_plane, worker.is_control_plane, pool.is_control_plane) == (
        True,
        False,
        False,
    )
    assert first.node_taints == ()
    assert worker.node_taints == pool.node_taints == (UNINITIALIZED_TAINT,)
    assert worker.version == pool.version == "v1.34.0"
    pair = worker.certificate("ca")
    assert pair.private_key == certificate_of("ca").private_key
    assert repr(pair.private_key) not in repr(pair)
    with pytest.raises(NotAvailableError, match="WaitingForCertificates"):
        worker.certificate("apiserver-etcd-client")


def test_a_machine_is_updated_in_place_while_it_has_the_annotation() -> None:
    """Core sets the annotation to an empty value.

    Proves: BC-15.
    """
    annotation = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"
    assert is_updating_in_place({"metadata": {"annotations": {annotation: ""}}})
    assert not is_updating_in_place({"metadata": {"annotations": {}}})
