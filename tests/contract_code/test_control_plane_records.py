"""Rollout reasons, retries, propagated metadata, and versions of foreign kinds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from capsmith_generated.contract.control_plane_machine import ControlPlaneMachine
from capsmith_generated.contract.core_machines import CORE_MACHINES
from capsmith_generated.contract.model import ObjectRef
from capsmith_generated.controllers.control_plane import retries
from capsmith_generated.controllers.control_plane.contract_kinds import ContractKinds
from capsmith_generated.controllers.control_plane.machines import new_name
from capsmith_generated.controllers.control_plane.propagation import fresh, propagated
from capsmith_generated.controllers.control_plane.records import (
    Marks,
    Replacement,
    digest,
    encoded,
    pending_machine,
)
from capsmith_generated.controllers.control_plane.rollout import (
    Wanted,
    next_deadline,
    outdated_because,
)
from capsmith_generated.results import NotAvailableError
from capsmith_generated.runtime.client import KubeClient, ResourceType
from capsmith_generated.runtime.metrics import Metrics
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MARKS = Marks("foocontrolplane.controlplane.example.com")
TEMPLATE = ObjectRef("infrastructure.example.com", "FooMachineTemplate", "t1")
SPEC = {"packages": ["a"], "files": [{"path": "/x"}]}
WANTED = Wanted(
    version="v1.34.0", template=TEMPLATE, bootstrap_spec=SPEC, bootstrap_mark=MARKS.bootstrap_spec
)


def _machine(**changes: Any) -> ControlPlaneMachine:
    made = CORE_MACHINES["v1beta2"].read(
        {
            "metadata": {"name": "m", "creationTimestamp": "2029-12-31T00:00:00Z"},
            "spec": {"version": "v1.34.0"},
        }
    )
    return replace(made, **changes)


def _infrastructure(name: str = "t1", kind: str = "FooMachineTemplate") -> dict[str, Any]:
    prefix = "cluster.x-k8s.io/cloned-from"
    group = "infrastructure.example.com"
    notes = {f"{prefix}-name": name, f"{prefix}-groupkind": f"{kind}.{group}"}
    return {"kind": "FooMachine", "metadata": {"annotations": notes}}


def _bootstrap(spec: Any = SPEC, asked: Any = SPEC) -> dict[str, Any]:
    notes = {MARKS.bootstrap_spec: digest(asked)}
    return {"kind": "FooConfig", "metadata": {"annotations": notes}, "spec": spec}


def _reasons(**changes: Any) -> tuple[str, ...]:
    given = {"machine": _machine(), "infrastructure": _infrastructure(), "bootstrap": _bootstrap()}
    given |= {"wanted": WANTED, "now": NOW} | changes
    return outdated_because(**given)


def test_a_machine_as_it_would_be_made_now_is_up_to_date() -> None:
    assert _reasons() == ()
    assert _reasons(infrastructure=None, bootstrap=None) == ()
    assert _reasons(infrastructure={"kind": "FooMachine"}) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"machine": _machine(version="v1.33.0")},
        {"infrastructure": _infrastructure("t0")},
        {"infrastructure": _infrastructure(kind="BarMachineTemplate")},
        {"bootstrap": _bootstrap({"packages": ["b"], "files": [{"path": "/x"}]})},
        {"bootstrap": _bootstrap({"packages": ["a"]})},
        {"wanted": replace(WANTED, rollout_after=NOW - timedelta(hours=1))},
        {
            "machine": _machine(certificates_expiry="2030-01-10T00:00:00Z"),
            "wanted": replace(WANTED, certificates_seconds=20 * 86400),
        },
    ],
    ids=["version", "template", "kind", "spec", "spec grew", "time", "certificates"],
)
def test_what_makes_a_machine_outdated(changes: dict[str, Any]) -> None:
    """Proves: CP-18."""
    (reason,) = _reasons(**changes)
    assert reason


def test_time_that_has_not_come_replaces_nothing() -> None:
    """Proves: CP-18."""
    later = replace(WANTED, rollout_after=NOW + timedelta(minutes=5))
    earlier = replace(WANTED, rollout_after=NOW - timedelta(days=30))
    soon = replace(WANTED, certificates_seconds=20 * 86400.0)
    machine = _machine(certificates_expiry="2030-02-01T00:00:00Z")

    assert _reasons(wanted=later) == _reasons(wanted=earlier) == ()
    assert _reasons(wanted=soon, machine=machine) == ()
    assert next_deadline((machine,), later, NOW) == 301.0
    assert next_deadline((machine,), soon, NOW) == 11 * 86400 + 1.0
    assert next_deadline((machine,), earlier, NOW) is None


def test_what_others_write_into_a_configuration_replaces_nothing() -> None:
    more = {**SPEC, "format": "cloud-config", "files": [{"path": "/x", "owner": "root"}]}

    assert _reasons(bootstrap=_bootstrap(more)) == ()
    # A default that came with a new schema is in both.
    assert _reasons(bootstrap=_bootstrap({**SPEC, "new": 1}, SPEC)) == ()
    defaulted = replace(WANTED, bootstrap_spec={**SPEC, "new": 1})
    assert _reasons(wanted=defaulted, bootstrap=_bootstrap({**SPEC, "new": 1}, SPEC)) == ()


def test_what_is_asked_for_no_longer_replaces_the_machine() -> None:
    before = {**SPEC, "format": "ignition"}

    assert _reasons(bootstrap=_bootstrap(before, before))


def test_an_empty_spec_asks_for_nothing() -> None:
    nothing = replace(WANTED, bootstrap_spec={})

    assert _reasons(wanted=nothing, bootstrap=_bootstrap({"format": "x"}, {})) == ()
    assert _reasons(wanted=nothing, bootstrap=_bootstrap({}, {})) == ()


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))
METADATA = st.fixed_dictionaries({"labels": LABELS, "annotations": LABELS})


@settings(deadline=None)
@given(METADATA, METADATA, METADATA)
def test_metadata_follow_the_template_and_leave_the_rest(
    foreign: Any, first: Any, second: Any
) -> None:
    """Proves: CP-20, IM-18."""
    mark = MARKS.propagated
    made = {"metadata": {"name": "m", **fresh(foreign, first, mark)}}
    once = {"metadata": propagated(made, first, mark)}
    found = {"metadata": propagated(once, second, mark)}

    for part in ("labels", "annotations"):
        values = found["metadata"].get(part, {})
        assert values.items() >= second[part].items()
        for key, value in foreign[part].items():
            taken = first[part].get(key, value) != value or key in second[part]
            touched = key in first[part]
            assert taken or touched or values.get(key) == value
        left = set(values) - {mark} - set(second[part]) - set(foreign[part])
        assert not left, "what the template says no longer is gone"
    assert propagated(found, second, mark) == found["metadata"]
    assert found["metadata"]["name"] == "m"


def test_a_value_that_somebody_has_changed_since_is_theirs() -> None:
    """Proves: CP-20."""
    mark = MARKS.propagated
    made = {"metadata": fresh({}, {"labels": {"a": "x", "b": "x"}}, mark)}
    made["metadata"]["labels"]["b"] = "mine"

    assert propagated(made, {}, mark)["labels"] == {"b": "mine"}


def test_records_that_cannot_be_read_count_as_none() -> None:
    for text in ("", "{", "[]", '{"name": "m"}', "null"):
        assert pending_machine({MARKS.pending: text}, MARKS) is None


def test_names_are_labels_of_nodes() -> None:
    for base in ("cp", "c" * 63, "c" * 57 + "-x", "a.b"):
        found = new_name(base)
        assert len(found) <= 63
        assert found.startswith(base[:50])
        assert found[-6] == "-"
        assert not found[:-6].endswith(("-", "."))


def _replaced(minutes: float, retries: int) -> ControlPlaneMachine:
    time = (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    record = Replacement(machine="before", time=time, retries=retries)
    return _machine(annotations={MARKS.replaces: encoded(record)})


def test_a_replacement_that_breaks_soon_is_the_same_trouble() -> None:
    """Proves: CP-31."""
    rules = retries.Policy(max_retry=2, retry_seconds=600)

    assert retries.reprieve(_machine(), MARKS.replaces, rules, NOW).message == ""
    again = retries.reprieve(_replaced(5, 0), MARKS.replaces, rules, NOW)
    assert again.seconds == 300
    assert retries.reprieve(_replaced(11, 1), MARKS.replaces, rules, NOW).message == ""
    assert "in vain" in retries.reprieve(_replaced(11, 2), MARKS.replaces, rules, NOW).message
    assert retries.reprieve(_replaced(61, 2), MARKS.replaces, rules, NOW).message == ""
    assert retries.next_try(_replaced(5, 1), MARKS.replaces, rules, NOW).retries == 2
    assert retries.next_try(_replaced(61, 1), MARKS.replaces, rules, NOW).retries == 0


def test_the_policy_of_the_spec() -> None:
    """Proves: CP-31."""
    spec = {"remediation": {"maxRetry": 0, "minHealthyPeriodSeconds": 0}}

    assert retries.policy({"spec": spec}) == retries.Policy(max_retry=0, healthy_seconds=0)
    assert retries.policy({}) == retries.Policy()


def _crd(kind: str, labels: dict[str, str], served: tuple[str, ...]) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    versions = [
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


def _resolved(core: str, labels: dict[str, str], served: tuple[str, ...]) -> ResourceType:
    kinds = ContractKinds(cast(KubeClient, None), Metrics(), core)
    for contract, cache in kinds._caches.items():
        if contract in labels:
            crd = cache._cache.project(_crd("FooMachineTemplate", labels, served))
            cache._cache.replace([crd], 1)
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
def test_labels_say_which_version_to_use(
    core: str, labels: dict[str, str], served: tuple[str, ...], version: str
) -> None:
    """Proves: GEN-01, GEN-02, GEN-03, GEN-10, RB-08."""
    found = _resolved(core, labels, served)

    assert found == ResourceType("foo.com", version, "FooMachineTemplate", "foomachinetemplates")


@pytest.mark.parametrize(
    ("core", "labels", "served"),
    [
        ("v1beta2", {}, ("v1",)),
        ("v1beta1", {"v1beta2": "v1"}, ("v1",)),
        ("v1beta2", {"v1beta2": "v1"}, ()),
    ],
)
def test_a_kind_without_a_contract_is_waited_for(
    core: str, labels: dict[str, str], served: tuple[str, ...]
) -> None:
    """Proves: GEN-01, GEN-02."""
    with pytest.raises(NotAvailableError, match="ContractVersionNotFound"):
        _resolved(core, labels, served)
