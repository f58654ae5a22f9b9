"""Check infrastructure clusters: what they wait for, and the status they report."""

from __future__ import annotations

from capsmith.judge.running.checks.shared import (
    EXTERNAL,
    MAIN,
    OWNERLESS,
    check_conditions,
    ensure_blocked,
    ensure_main_cluster,
    ensure_main_machine,
    refuse_effects,
    wait_for_condition,
)
from capsmith.judge.running.contract import endpoint, failure_domains
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated
from capsmith.judge.running.session import Session


def _provisioned(session: Session) -> None:
    ensure_main_cluster(session)


def _ownerless(session: Session) -> None:
    ensure_main_machine(session)
    kind = session.objects.cluster_kind
    refuse_effects(session, kind, OWNERLESS, "no Cluster owns the object")


def _endpoint(session: Session) -> None:
    infrastructure = ensure_main_cluster(session)
    if not session.provides_endpoint:
        message = "infrastructure clusters have no endpoint; the user or a control plane gives it"
        raise Skipped(message)
    kind = session.objects.cluster_kind
    expected = endpoint(infrastructure)
    path = "spec.controlPlaneEndpoint"
    if not expected:
        message = "it is provisioned, but host or port of its endpoint is missing"
        raise Violated(message, session.subject(kind, MAIN), path)
    session.wait(
        "Cluster",
        MAIN,
        # At least these domains: core may add fields to its own copy.
        lambda cluster: endpoint(cluster).items() >= expected.items(),
        "core did not copy the endpoint to the Cluster",
        path,
    )


def _failure_domains(session: Session) -> None:
    expected = failure_domains(ensure_main_cluster(session))
    if not expected:
        raise Skipped("the infrastructure cluster reports no failure domains")
    session.wait(
        "Cluster",
        MAIN,
        lambda cluster: failure_domains(cluster) == expected,
        f"core did not copy the failure domains {expected} to the Cluster",
        "status.failureDomains",
    )


def _ready(session: Session) -> None:
    wait_for_condition(session, ensure_main_cluster(session), "Ready", "True")


def _conditions(session: Session) -> None:
    ensure_main_cluster(session)
    check_conditions(session, session.objects.cluster_kind, MAIN)


def _externally_managed(session: Session) -> None:
    ensure_blocked(session)
    kind = session.objects.cluster_kind
    reason = "the annotation cluster.x-k8s.io/managed-by leaves it to another system"
    refuse_effects(session, kind, EXTERNAL, reason)
    states = session.history.states(kind, EXTERNAL)
    if states[-1]["metadata"].get("finalizers"):
        message = f"the manager added a finalizer although {reason}"
        raise Violated(message, session.subject(kind, EXTERNAL), "metadata.finalizers")


INFRA_CLUSTER = (
    ConformanceCheck(
        "cluster-provisioned",
        "An infrastructure cluster becomes provisioned.",
        ("IC-05", "IC-06", "IC-19"),
        _provisioned,
    ),
    ConformanceCheck(
        "cluster-waits-for-owner",
        "An infrastructure cluster without a Cluster is left alone.",
        ("IC-19",),
        _ownerless,
    ),
    ConformanceCheck(
        "cluster-endpoint",
        "A provisioned infrastructure cluster has an endpoint, which core copies to the Cluster.",
        ("IC-02", "IC-03"),
        _endpoint,
    ),
    ConformanceCheck(
        "cluster-failure-domains",
        "Core copies the failure domains to the Cluster.",
        ("IC-08", "IC-09"),
        _failure_domains,
    ),
    ConformanceCheck(
        "cluster-ready",
        "A provisioned infrastructure cluster has the condition Ready.",
        ("IC-10", "IC-11"),
        _ready,
    ),
    ConformanceCheck(
        "cluster-conditions",
        "The conditions of an infrastructure cluster have the shape of the contract.",
        ("ST-01", "ST-02"),
        _conditions,
    ),
    ConformanceCheck(
        "cluster-externally-managed",
        "An externally managed infrastructure cluster is left alone.",
        ("IC-15", "IC-19"),
        _externally_managed,
    ),
)
