"""Machines in all versions of core, read and written by their control plane."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith_runtime.contract import kubernetes_version, times
from capsmith_runtime.contract.control_plane import (
    CoreMachines,
    MachineCondition,
    MachineDraft,
    MachineSettings,
    is_waiting_for_pre_terminate,
)
from capsmith_runtime.contract.control_plane_shapes import CONTROL_PLANE_SHAPES, CORE_MACHINES
from capsmith_runtime.contract.model import Condition, ObjectRef

VERSIONS = pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
NOW = "2030-01-01T00:00:00Z"
INFRASTRUCTURE = {
    "apiVersion": "infrastructure.example.com/v1",
    "kind": "FooMachine",
    "metadata": {"namespace": "ns", "name": "m"},
}
BOOTSTRAP = {
    "apiVersion": "bootstrap.example.com/v2",
    "kind": "FooConfig",
    "metadata": {"namespace": "ns", "name": "m"},
}


def _new(core: CoreMachines, **settings: Any) -> dict[str, Any]:
    draft = MachineDraft(
        metadata={"namespace": "ns", "name": "m"},
        cluster_name="c",
        version="v1.34.0",
        failure_domain="a",
        infrastructure=INFRASTRUCTURE,
        bootstrap=BOOTSTRAP,
        settings=MachineSettings(**settings),
    )
    return core.build(draft)


@VERSIONS
def test_a_new_machine_can_be_read_back(version: str) -> None:
    """Proves: CP-19."""
    core = CORE_MACHINES[version]

    found = core.read(_new(core))

    assert (found.name, found.version, found.failure_domain) == ("m", "v1.34.0", "a")
    assert found.infrastructure == ObjectRef("infrastructure.example.com", "FooMachine", "m")
    assert found.bootstrap == ObjectRef("bootstrap.example.com", "FooConfig", "m")
    assert not found.deleting


def test_references_of_both_versions() -> None:
    """Proves: CP-19."""
    old = _new(CORE_MACHINES["v1beta1"])["spec"]["infrastructureRef"]
    new = _new(CORE_MACHINES["v1beta2"])["spec"]["infrastructureRef"]

    group = "infrastructure.example.com"
    assert old == {
        "apiVersion": f"{group}/v1",
        "kind": "FooMachine",
        "name": "m",
        "namespace": "ns",
    }
    assert new == {"apiGroup": group, "kind": "FooMachine", "name": "m"}


def test_settings_of_both_versions() -> None:
    """Proves: CP-14, CP-15, CP-16, CP-17, CP-20, CP-32."""
    gate = {"conditionType": "Foo"}
    taint = {"key": "k", "effect": "NoSchedule", "propagation": "Always"}
    settings = {"drain_seconds": 90, "readiness_gates": [gate], "taints": [taint]}

    old = _new(CORE_MACHINES["v1beta1"], **settings)["spec"]
    new = _new(CORE_MACHINES["v1beta2"], **settings)["spec"]

    assert (old["nodeDrainTimeout"], old["nodeDeletionTimeout"]) == ("1m30s", "10s")
    assert "taints" not in old
    assert new["deletion"] == {"nodeDrainTimeoutSeconds": 90, "nodeDeletionTimeoutSeconds": 10}
    assert new["minReadySeconds"] == 0
    assert new["taints"] == [taint]
    assert old["readinessGates"] == new["readinessGates"] == [gate]


_TIMEOUTS: dict[str, dict[str, Any]] = {
    "v1beta1": {
        "nodeDrainTimeout": "1m30s",
        "nodeVolumeDetachTimeout": "20s",
        "nodeDeletionTimeout": "7s",
    },
    "v1beta2": {
        "spec": {
            "deletion": {
                "nodeDrainTimeoutSeconds": 90,
                "nodeVolumeDetachTimeoutSeconds": 20,
                "nodeDeletionTimeoutSeconds": 7,
            }
        }
    },
}


@VERSIONS
def test_each_timeout_of_the_control_plane_reaches_its_machines(version: str) -> None:
    """Each of the three timeouts is read from the control plane and written into the Machine.

    Proves: CP-14, CP-15.
    """
    control_plane = {"spec": {"machineTemplate": _TIMEOUTS[version]}}
    found = CONTROL_PLANE_SHAPES[version].read_machine_template(control_plane).settings

    timeouts = (found.drain_seconds, found.volume_detach_seconds, found.deletion_seconds)
    assert timeouts == (90, 20, 7)
    spec = CORE_MACHINES[version].build_spec({"spec": {}}, found)
    expected = _TIMEOUTS[version].get("spec") or _TIMEOUTS[version]
    assert {key: spec[key] for key in expected} == expected


@VERSIONS
def test_removed_settings_are_removed_from_the_machine(version: str) -> None:
    """Proves: CP-20."""
    core = CORE_MACHINES[version]
    gates = [{"conditionType": "Foo"}]
    before = _new(core, drain_seconds=90, volume_detach_seconds=5, readiness_gates=gates)

    assert core.build_spec(before, MachineSettings()) == _new(core)["spec"]


def test_an_equal_duration_in_another_format_is_no_change() -> None:
    """Proves: CP-15."""
    core = CORE_MACHINES["v1beta1"]
    machine = {"spec": {"nodeDrainTimeout": "90s", "nodeDeletionTimeout": "10s"}}

    assert core.build_spec(machine, MachineSettings(drain_seconds=90)) == machine["spec"]


@VERSIONS
def test_zero_is_a_valid_timeout(version: str) -> None:
    """Proves: CP-14, CP-15."""
    core = CORE_MACHINES[version]

    found = str(_new(core, drain_seconds=0, deletion_seconds=0)["spec"])

    assert "10" not in found
    assert found.count("0s") == 2 or found.count("Seconds': 0") == 3


@VERSIONS
def test_min_ready_seconds_of_others_are_kept(version: str) -> None:
    """Proves: CP-32."""
    core = CORE_MACHINES[version]
    machine = {"spec": {"minReadySeconds": 7}}

    assert core.build_spec(machine, MachineSettings())["minReadySeconds"] == 7


def test_failure_domains_for_control_planes() -> None:
    """Proves: CP-24."""
    old = {"status": {"failureDomains": {"b": {"controlPlane": True}, "a": {}, "c": {}}}}
    new = {
        "status": {
            "failureDomains": [
                {"name": "z", "controlPlane": True},
                {"name": "a", "controlPlane": True},
                {"name": "w"},
            ]
        }
    }

    assert CORE_MACHINES["v1beta1"].read_failure_domains(old) == ("b",)
    assert CORE_MACHINES["v1beta2"].read_failure_domains(new) == ("a", "z")
    assert CORE_MACHINES["v1beta2"].read_failure_domains({}) == ()


def test_conditions_are_read_from_the_list_of_the_version() -> None:
    """Proves: ST-04."""
    entry = {"type": "Ready", "status": "False", "reason": "Old", "message": "x"}
    newer = {**entry, "status": "True", "reason": "New"}
    status = {"conditions": [entry], "v1beta2": {"conditions": [newer]}}

    assert CORE_MACHINES["v1beta2"].read({"status": {"conditions": [entry]}}).conditions == {
        "Ready": MachineCondition("False", "Old", "x")
    }
    assert CORE_MACHINES["v1beta1"].read({"status": status}).has_condition("Ready", "True")


@VERSIONS
def test_conditions_of_the_owner(version: str) -> None:
    """Proves: CP-31, CP-32."""
    core = CORE_MACHINES[version]
    foreign = {"type": "Foreign", "status": "True"}
    stale = {"type": "OwnerRemediated", "status": "False"}
    listed = {"conditions": [foreign, stale]}
    status: dict[str, Any] = {"phase": "Running", **listed}
    if version == "v1beta1":
        status["v1beta2"] = listed
    condition = Condition(type="UpToDate", status=True, reason="UpToDate")

    found = core.build_status({"status": status}, [condition], ["OwnerRemediated"], NOW)

    inner = found["v1beta2"] if version == "v1beta1" else found
    assert [each["type"] for each in inner["conditions"]] == ["Foreign", "UpToDate"]
    assert "OwnerRemediated" not in str(found)
    assert found["phase"] == "Running"


@VERSIONS
def test_a_deletion_that_waits_for_hooks_is_recognised(version: str) -> None:
    """Proves: SM-05."""
    entry = {"type": "Deleting", "status": "True", "reason": "WaitingForPreTerminateHook"}
    listed = {"conditions": [entry]}
    status = {"v1beta2": listed} if version == "v1beta1" else listed
    core = CORE_MACHINES[version]

    assert is_waiting_for_pre_terminate(core.read({"status": status}))
    assert not is_waiting_for_pre_terminate(core.read({}))


@settings(deadline=None)
@given(st.integers(0, 10**7))
def test_durations_round_trip(seconds: int) -> None:
    assert times.parse_seconds(times.format_seconds(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("5m", 300), ("1h30m", 5400), ("1.5s", 1), ("100ms", 0), ("0s", 0), ("1h0m0s", 3600)),
        *(("+5m", 300), ("0", 0), ("1000000\N{GREEK SMALL LETTER MU}s", 1), ("4.35m", 261)),
        *(("600ms400ms", 1), ("000000000000000000001h", 3600), ("2562047h", 9223369200)),
    ],
)
def test_durations(text: str, seconds: int) -> None:
    assert times.parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "5 m", "m", None, 5, "-5m", "+", ".s", "2562048h"])
def test_invalid_durations(text: object) -> None:
    assert times.parse_seconds(text) is None


def test_versions_are_ordered_as_semantic_versions() -> None:
    """Proves: CP-09."""
    ordered = [
        "v1.9.10",
        "v1.10.0-alpha.1",
        "v1.10.0-alpha.2",
        "v1.10.0-alpha.10",
        "v1.10.0-rc.0",
        "v1.10.0",
        "v1.10.0+build.2",
        "v1.10.0+build.10",
        "v1.10.1",
        "v2.0.0",
    ]

    mixed = [*ordered[5:], *ordered[:5]]
    assert sorted(mixed, key=kubernetes_version.sort_key) == ordered


@pytest.mark.parametrize(
    "version",
    ["latest", "v1.34", "v1.34.0-a..b", "v1.34.0-", "v1.34.0-rc.01", "v1.34.0+", f"v1.{2**64}.0"],
)
def test_versions_that_core_cannot_parse_are_refused(version: str) -> None:
    """Proves: CP-09."""
    with pytest.raises(ValueError, match=r"not a semantic version|too large"):
        kubernetes_version.sort_key(version)


def test_versions_are_counted_the_oldest_first() -> None:
    """Proves: CP-09, CP-10."""
    found = kubernetes_version.count_versions(["v1.34.1", "v1.9.0", "v1.34.1", "latest"])

    assert found == (("v1.9.0", 1), ("v1.34.1", 2))
    assert kubernetes_version.count_versions([]) == ()


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("v1.34.0", "v1.34.9", True),
        ("1.33.0", "v1.34.0", True),
        ("v1.35.0-rc.1", "v1.34.0", True),
        ("v1.32.9", "v1.34.0", False),
        ("v2.34.0", "v1.34.0", False),
        ("latest", "v1.34.0", False),
        ("v1.34.0", "", False),
    ],
)
def test_versions_within_one_minor_release(one: str, other: str, near: bool) -> None:
    assert kubernetes_version.is_within_one_minor(one, other) is near


def test_a_missing_v_is_added() -> None:
    """Proves: CP-08."""
    assert kubernetes_version.normalize("1.34.0") == "v1.34.0"
    assert kubernetes_version.normalize("v1.34.0") == "v1.34.0"


def test_times() -> None:
    found = times.parse_time("2030-01-01T01:00:00+01:00")

    assert found is not None
    assert times.format_time(found) == "2030-01-01T00:00:00Z"
    assert times.parse_time("soon") is times.parse_time(None) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2030-01-01T04:05:06.1234567Z", "2030-01-01T04:05:06.123456+00:00"),
        ("2030-01-01T04:05:06,5Z", "2030-01-01T04:05:06.500000+00:00"),
        ("2030-01-01T4:00:00Z", "2030-01-01T04:00:00+00:00"),
        ("2030-01-01T00:00:00-24:60", "2030-01-02T01:00:00+00:00"),
        ("2030-01-01T00:00:00", None),
        ("2030-01-01", None),
        ("20300101T000000Z", None),
        ("2030-W01-1T00:00:00Z", None),
        ("2030-01-01T00:00Z", None),
        ("2030-01-01 00:00:00Z", None),
        ("2030-01-01T00:00:00z", None),
        ("2030-01-01T00:00:00+0100", None),
        ("2030-01-01T00:00:00+01:00:10", None),
        ("2030-01-01T24:00:00Z", None),
        ("2030-02-29T00:00:00Z", None),
        ("2030-01-01T00:00:00Z\n", None),
        ("\u0662030-01-01T00:00:00Z", None),
        ("0000-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00+01:00"),
        ("0001-01-01T00:00:00+24:00", None),
    ],
)
def test_times_are_those_of_go(text: str, expected: str | None) -> None:
    """Go has years that Python does not have; the others are read as Go reads them."""
    found = times.parse_time(text)
    assert (None if found is None else found.isoformat()) == expected
