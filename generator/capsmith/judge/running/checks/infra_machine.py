"""Check infrastructure machines and templates: what they wait for, and the status they report.

A template must refuse changes, except in dry runs by core's topology controller.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from capsmith.clusters.processes.kube import JSON, ApiError
from capsmith.judge.running.checks.shared import (
    BLOCKED,
    EXTERNAL,
    FIRST,
    MAIN,
    OWNERLESS,
    WAITING,
    check_conditions,
    ensure_blocked,
    ensure_main_cluster,
    ensure_main_machine,
    refuse_effects,
    wait_for_condition,
)
from capsmith.judge.running.contract import failure_domains, is_provisioned, provider_id
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated
from capsmith.judge.running.session import Session

_PLACED = "main-placed"
_ADDRESS_TYPES = ("Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS")


def _provisioned(session: Session) -> None:
    ensure_main_machine(session)


def _ownerless(session: Session) -> None:
    ensure_main_machine(session)
    kind = session.objects.machine_kind
    refuse_effects(session, kind, OWNERLESS, "no Machine owns the object")


def _waits_for_cluster(session: Session) -> None:
    ensure_blocked(session)
    cluster = session.latest(session.objects.cluster_kind, EXTERNAL)
    if is_provisioned(cluster, session.contract):
        raise Skipped("the externally managed infrastructure cluster was provisioned")
    reason = "the infrastructure of its cluster is not provisioned"
    refuse_effects(session, session.objects.machine_kind, BLOCKED, reason)


def _waits_for_data(session: Session) -> None:
    ensure_blocked(session)
    kind = session.objects.machine_kind
    refuse_effects(session, kind, WAITING, "its Machine has no bootstrap data")
    # Afterwards it must continue: otherwise a manager that never acts would pass as one that waits.
    session.provide_data(session.latest("Machine", WAITING))
    session.wait_provisioned(kind, WAITING)


def _provider_id(session: Session) -> None:
    machine = ensure_main_machine(session)
    if not provider_id(machine):
        message = "it is provisioned, but its provider ID is missing"
        raise Violated(message, session.subject(machine["kind"], FIRST), "spec.providerID")
    expected = provider_id(machine)
    session.wait(
        "Machine",
        FIRST,
        lambda each: provider_id(each) == expected,
        "core did not copy the provider ID to the Machine",
        "spec.providerID",
    )


def _addresses(session: Session) -> None:
    machine = ensure_main_machine(session)
    addresses = (machine.get("status") or {}).get("addresses") or []
    if not addresses:
        raise Skipped("the infrastructure machine reports no addresses")
    for number, each in enumerate(addresses):
        if each.get("type") not in _ADDRESS_TYPES or not each.get("address"):
            where = session.subject(machine["kind"], FIRST)
            path = f"status.addresses[{number}]"
            raise Violated(f"an address is {each}", where, path)


def _failure_domain(session: Session) -> None:
    domains = failure_domains(ensure_main_cluster(session))
    if not domains:
        raise Skipped("the infrastructure cluster reports no failure domains")
    kind = session.objects.machine_kind
    # Two domains, because a provider that ignores what the Machine requires may always use the
    # same one.  Both machines are created before the first is there, which saves time.
    chosen = dict.fromkeys((domains[-1], domains[0]))
    required = {f"{_PLACED}-{number}": domain for number, domain in enumerate(chosen)}
    for name, domain in required.items():
        session.create_machine(MAIN, name, failure_domain=domain)
    reports = [_check_placed(session, kind, *each) for each in required.items()]
    if not any(reports):
        raise Skipped("the infrastructure machines do not report their failure domains")


def _check_placed(session: Session, kind: str, name: str, required: str) -> bool:
    """Return whether a machine reports its failure domain, which has to be the required one."""
    machine = session.wait_provisioned(kind, name)
    found = {
        f"{part}.failureDomain": (machine.get(part) or {}).get("failureDomain")
        for part in ("spec", "status")
    }
    for path, actual in found.items():
        if actual and actual != required:
            message = (
                f"the Machine requires failure domain {required}, its infrastructure is in {actual}"
            )
            raise Violated(message, session.subject(kind, name), path)
    return any(found.values())


def _ready(session: Session) -> None:
    wait_for_condition(session, ensure_main_machine(session), "Ready", "True")


def _conditions(session: Session) -> None:
    ensure_main_machine(session)
    check_conditions(session, session.objects.machine_kind, FIRST)


INFRA_MACHINE = (
    ConformanceCheck(
        "machine-provisioned",
        "An infrastructure machine becomes provisioned.",
        ("IM-03", "IM-04"),
        _provisioned,
    ),
    ConformanceCheck(
        "machine-waits-for-owner",
        "An infrastructure machine without a Machine is left alone.",
        ("IM-19",),
        _ownerless,
    ),
    ConformanceCheck(
        "machine-waits-for-cluster",
        "An infrastructure machine waits for the infrastructure of its cluster.",
        ("IM-19",),
        _waits_for_cluster,
    ),
    ConformanceCheck(
        "machine-waits-for-data",
        "An infrastructure machine waits for the bootstrap data, then becomes provisioned.",
        ("IM-19",),
        _waits_for_data,
    ),
    ConformanceCheck(
        "machine-provider-id",
        "A provisioned infrastructure machine has a provider ID, which core copies to the Machine.",
        ("IM-01", "IM-02"),
        _provider_id,
    ),
    ConformanceCheck(
        "machine-addresses",
        "Addresses have a type and a value.",
        ("IM-08",),
        _addresses,
    ),
    ConformanceCheck(
        "machine-failure-domain",
        "An infrastructure machine is in the failure domain of its Machine.",
        ("IM-06",),
        _failure_domain,
    ),
    ConformanceCheck(
        "machine-ready",
        "A provisioned infrastructure machine has the condition Ready.",
        ("IM-10",),
        _ready,
    ),
    ConformanceCheck(
        "machine-conditions",
        "The conditions of an infrastructure machine have the shape of the contract.",
        ("ST-01", "ST-02"),
        _conditions,
    ),
)


_NAME = "main-template"
_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"
_MANAGER = "capi-topology"
_REFUSALS = (403, 422)


def _immutable(session: Session) -> None:
    template = _template(session)
    for changed in _changes(template):
        if _is_valid(session, changed):
            # A dry run, because the template must not change for later checks.
            if not _refused(session, changed):
                message = "a change of spec.template.spec was accepted"
                where = session.subject(template["kind"], _NAME)
                raise Violated(message, where, "spec.template.spec")
            return
    raise Skipped("no field of spec.template.spec has another valid value")


def _dry_run(session: Session) -> None:
    template = _template(session)
    for changed in _changes(template):
        if _is_valid(session, changed):
            # Core sets the annotation only in dry runs, and so does this check.
            changed["metadata"]["annotations"] = {_DRY_RUN: ""}
            refusal = _refused(session, changed)
            if refusal:
                message = f"a dry run of core's topology controller was refused: {refusal}"
                where = session.subject(template["kind"], _NAME)
                raise Violated(message, where, "spec.template.spec")
            return
    raise Skipped("no field of spec.template.spec has another valid value")


def _template(session: Session) -> JSON:
    template = session.objects.template(MAIN, session.namespace, _NAME)
    session.run_once("the creation of a template", lambda: _create(session, template))
    return template


def _create(session: Session, template: JSON) -> None:
    session.client.apply(template, _MANAGER)


def _refused(session: Session, template: JSON) -> str:
    """Return the message with which a dry run of an update is refused; empty if it succeeds."""
    try:
        session.client.apply(template, _MANAGER, dry_run=True)
    except ApiError as error:
        if error.status not in _REFUSALS:
            raise
        return error.message
    return ""


def _is_valid(session: Session, template: JSON) -> bool:
    """Return whether a new template with the same content would be accepted."""
    # Under another name this is a creation: only an update may be refused because it is a change.
    other = copy.deepcopy(template)
    other["metadata"]["name"] = f"{_NAME}-other"
    return not _refused(session, other)


def _changes(template: JSON) -> Iterator[JSON]:
    """Yield copies of the template, each with one field changed."""
    spec = template["spec"]["template"].get("spec") or {}
    for key, value in spec.items():
        other = _other(value)
        if other is not None:
            changed = copy.deepcopy(template)
            changed["spec"]["template"]["spec"][key] = other
            yield changed


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value * 2 or 1
    # Lists and mappings are left unchanged, because a small change of these is rarely valid.
    return f"{value}x" if isinstance(value, str) else None


TEMPLATES = (
    ConformanceCheck(
        "template-immutable",
        "A change of a machine template's spec.template.spec is refused.",
        ("IM-13",),
        _immutable,
    ),
    ConformanceCheck(
        "template-dry-run",
        "Core's topology controller may try a change of a machine template in a dry run.",
        ("IM-14",),
        _dry_run,
    ),
)
