"""What happens to the Machines of a control plane, and what happens without touching them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually, settled
from tests.e2e.harness.report import Report
from tests.e2e.scenario import Scenario
from tests.e2e.whole import (
    WHOLE_NEWEST,
    WHOLE_OLDEST,
    WHOLE_PREVIOUS,
    WHOLE_SECONDS,
    WholeStack,
    control_plane,
    delete_and_check,
    members,
)
from tests.exhaustive import exhaustive

_QUIET_SECONDS = 3.0
_PRE_TERMINATE = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/"
_DELETE_FIRST = "cluster.x-k8s.io/delete-machine"


_NEWEST, *_OTHERS = (
    replace(each, name=each.name.replace("whole", "members"))
    for each in (WHOLE_NEWEST, WHOLE_OLDEST, *WHOLE_PREVIOUS)
)
"""A management cluster of their own, so a name of their own."""


@pytest.fixture(scope="module", params=[_NEWEST, *exhaustive(*_OTHERS)], ids=str)
def whole(request: pytest.FixtureRequest, base: Base, report: Report) -> Iterator[WholeStack]:
    made = WholeStack(base, request.param, report)
    yield made
    made.stop()


@pytest.fixture
def scenario(request: pytest.FixtureRequest, whole: WholeStack) -> Iterator[Scenario]:
    with whole.scenario(request.node.originalname) as made:
        yield made


def test_changes_in_place_and_rollouts(scenario: Scenario) -> None:
    """Core, its webhooks and the control plane agree on every Machine, and come to rest.

    Proves: CP-16, CP-18, CP-19, CP-20, CP-21, CP-24, CP-32, IM-17, IM-18.
    """
    report, name = scenario.stack.report, scenario.stack.name
    scenario.create(scenario.render(control_planes=3, workers=0))
    scenario.wait_running(3, timeout=WHOLE_SECONDS)
    eventually(lambda: _all_made(scenario), what="owners and zones of all members")
    _check_rest(scenario)
    with report.phase(name, "control plane: metadata, timeouts and gates in place"):
        before = _uids(scenario)
        _change_template(scenario, {"team": "a"}, seconds=90)
        _wait_in_place(scenario, {"team": "a"}, seconds=90)
        _change_template(scenario, {"team": None}, seconds=None)
        _wait_in_place(scenario, {}, seconds=None)
        _check_rest(scenario)
        assert _uids(scenario) == before
    with report.phase(name, "control plane: another bootstrap spec rolls all"):
        before = _uids(scenario)
        _patch(scenario, {"bootstrapConfigSpec": {"packages": ["jq"]}})
        _wait_rolled(scenario, before)
    for member in members(scenario):
        assert _bootstrap_of(scenario, member)["spec"]["packages"] == ["jq"]
    with report.phase(name, "control plane: a rollout at a time"):
        before = _uids(scenario)
        youngest = max(each["metadata"]["creationTimestamp"] for each in members(scenario))
        _patch(scenario, {"rollout": {"after": _a_second_after(youngest)}})
        _wait_rolled(scenario, before)
    _check_rest(scenario)
    delete_and_check(scenario)


def test_the_marked_member_goes_first(scenario: Scenario, whole: WholeStack) -> None:
    """Its removal waits for the author's code, by the hook that core knows.

    Proves: CP-31, SM-05.
    """
    scenario.create(scenario.render(control_planes=3, workers=0))
    scenario.wait_running(3, timeout=WHOLE_SECONDS)
    marked, *others = members(scenario)
    (held,) = eventually(lambda: _hooks(scenario, marked), what="the hook of the member")
    # Once its hook is back, the manager knows the mark too, and not only the new replicas.
    annotations = {f"{_PRE_TERMINATE}test": "", _DELETE_FIRST: "", held: None}
    scenario.client.patch(marked, {"metadata": {"annotations": annotations}})
    eventually(lambda: held in _hooks(scenario, marked), what="the hook of the member is back")
    _patch(scenario, {"replicas": 2})

    def leaves() -> bool:
        now = scenario.client.get(
            scenario.core, "Machine", marked["metadata"]["name"], scenario.namespace
        )
        if "deletionTimestamp" not in now["metadata"]:
            raise NotYet("it is not deleted")
        # Those of others come first, so ours is there as long as theirs is.
        return held in now["metadata"]["annotations"]

    eventually(leaves, what="the marked member is deleted")
    whole.site.wait_leading()
    settled(lambda: len(scenario.servers()), seconds=_QUIET_SECONDS, what="servers")
    assert len(scenario.servers()) == 3
    released = {"metadata": {"annotations": {f"{_PRE_TERMINATE}test": None}}}
    scenario.client.patch(marked, released)
    scenario.wait_running(2, timeout=WHOLE_SECONDS)
    left = {each["metadata"]["uid"] for each in members(scenario)}
    assert left == {each["metadata"]["uid"] for each in others}
    delete_and_check(scenario)


def _hooks(scenario: Scenario, machine: JSON) -> list[str]:
    """Those that keep a Machine's infrastructure until they are taken away."""
    name = machine["metadata"]["name"]
    now = scenario.client.get(scenario.core, "Machine", name, scenario.namespace)
    return [
        each for each in now["metadata"].get("annotations", {}) if each.startswith(_PRE_TERMINATE)
    ]


def _patch(scenario: Scenario, spec: JSON) -> None:
    scenario.client.patch(control_plane(scenario), {"spec": spec})


def _change_template(scenario: Scenario, labels: JSON, seconds: int | None) -> None:
    """In place: labels, a timeout, a readiness gate that is always fulfilled."""
    gates = [{"conditionType": "InfrastructureReady"}] if seconds else None
    if scenario.stack.provider.contract == "v1beta1":
        drain = None if seconds is None else f"{seconds}s"
        inner = {"nodeDrainTimeout": drain, "readinessGates": gates}
        _patch(scenario, {"machineTemplate": {"metadata": {"labels": labels}, **inner}})
        return
    deletion = None if seconds is None else {"nodeDrainTimeoutSeconds": seconds}
    spec = {"deletion": deletion, "readinessGates": gates}
    _patch(scenario, {"machineTemplate": {"metadata": {"labels": labels}, "spec": spec}})


def _wait_in_place(scenario: Scenario, labels: dict[str, str], seconds: int | None) -> None:
    def arrived() -> bool:
        for member in members(scenario):
            objects = (
                member,
                scenario.infrastructure_of(member),
                _bootstrap_of(scenario, member),
            )
            for obj in objects:
                found = {k: v for k, v in obj["metadata"]["labels"].items() if k == "team"}
                if found != labels:
                    raise NotYet(f"{obj['kind']} {obj['metadata']['name']}: {found}")
            if (_drain(member), bool(member["spec"].get("readinessGates"))) != (
                seconds,
                seconds is not None,
            ):
                raise NotYet(f"{member['spec']}")
        return True

    eventually(arrived, what=f"labels {labels} and {seconds} s")


def _drain(machine: JSON) -> int | None:
    spec: Any = machine["spec"]
    old = {None: None, "90s": 90, "1m30s": 90}
    if "nodeDrainTimeout" in spec:
        return old[spec["nodeDrainTimeout"]]
    found: int | None = spec.get("deletion", {}).get("nodeDrainTimeoutSeconds")
    return found


def _all_made(scenario: Scenario) -> bool:
    zones = sorted(each["spec"]["failureDomain"] for each in members(scenario))
    assert zones in (["zone-1", "zone-1", "zone-2"], ["zone-1", "zone-2", "zone-2"])
    uid = control_plane(scenario)["metadata"]["uid"]
    for member in members(scenario):
        assert _owners(member) == [(control_plane(scenario)["kind"], uid)]
        for obj in (scenario.infrastructure_of(member), _bootstrap_of(scenario, member)):
            assert obj["metadata"]["name"] == member["metadata"]["name"]
            assert _owners(obj) == [("Machine", member["metadata"]["uid"])]
    return True


def _owners(obj: JSON) -> list[tuple[str, str]]:
    return [(each["kind"], each["uid"]) for each in obj["metadata"].get("ownerReferences", [])]


def _bootstrap_of(scenario: Scenario, machine: JSON) -> JSON:
    reference = machine["spec"]["bootstrap"]["configRef"]
    version, kind, name = scenario.stack.dialect.resolve(scenario.client, reference)
    return scenario.client.get(version, kind, name, scenario.namespace)


def _uids(scenario: Scenario) -> set[str]:
    return {each["metadata"]["uid"] for each in members(scenario)}


def _wait_rolled(scenario: Scenario, before: set[str]) -> None:
    def rolled() -> bool:
        left = before & _uids(scenario)
        if left:
            raise NotYet(f"{len(left)} old members")
        return True

    eventually(rolled, timeout=WHOLE_SECONDS, what="all members replaced")
    scenario.wait_running(3, timeout=WHOLE_SECONDS)


def _check_rest(scenario: Scenario) -> None:
    """No two clients write against each other: the versions of all objects stay."""

    def versions() -> dict[str, str]:
        found = [control_plane(scenario), *members(scenario)]
        found += [scenario.infrastructure_of(each) for each in members(scenario)]
        found += [_bootstrap_of(scenario, each) for each in members(scenario)]
        return {
            f"{o['kind']} {o['metadata']['name']}": o["metadata"]["resourceVersion"] for o in found
        }

    settled(versions, seconds=_QUIET_SECONDS, what="objects of the control plane")


def _a_second_after(timestamp: str) -> str:
    later = datetime.fromisoformat(timestamp) + timedelta(seconds=1)
    return later.strftime("%Y-%m-%dT%H:%M:%SZ")
