"""ConversionReviews, the annotation with conversion data, and invalid input."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from capsmith_runtime.conversion import controllers
from capsmith_runtime.conversion.controllers import ConversionReviewError, respond
from capsmith_runtime.conversion.objects import ConversionError
from tests.runtime.conversion.kinds import NEW, OLD, converted, converter, named

DATA = "cluster.x-k8s.io/conversion-data"
GROUP = "infrastructure.cluster.x-k8s.io"


def review(*objects: Any, wanted: str = f"{GROUP}/{NEW}") -> dict[str, Any]:
    request = {"uid": "7", "desiredAPIVersion": wanted, "objects": list(objects)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


def test_objects_keep_their_order() -> None:
    objects = [
        named("HarbourCluster", OLD, status={"ready": True}),
        named("HarbourMachine", NEW, spec={"size": "s"}),
    ]

    response = asyncio.run(respond(review(*objects), converter()))["response"]

    assert (response["uid"], response["result"]) == ("7", {"status": "Success"})
    cluster, machine = response["convertedObjects"]
    assert cluster["status"] == {"initialization": {"provisioned": True}}
    assert machine == objects[1]


@pytest.mark.parametrize(
    ("obj", "wanted"),
    [
        (named("HarbourCluster", OLD), f"{GROUP}/v9"),
        (named("HarbourCluster", "v9"), f"{GROUP}/{NEW}"),
        (named("HarbourCluster", OLD), f"example.com/{NEW}"),
        ({**named("HarbourCluster", OLD), "kind": "Other"}, f"{GROUP}/{NEW}"),
        ("text", f"{GROUP}/{NEW}"),
    ],
)
def test_an_unknown_kind_or_version_fails_the_whole_review(obj: Any, wanted: str) -> None:
    good = named("HarbourCluster", OLD)

    response = asyncio.run(respond(review(good, obj, wanted=wanted), converter()))["response"]

    assert response["result"]["status"] == "Failure"
    assert response["result"]["message"]
    assert "convertedObjects" not in response


async def test_other_tasks_run_between_two_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the lease nor a probe waits for the conversion of thousands of objects."""
    monkeypatch.setattr(controllers, "TURN_SECONDS", -1.0)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await respond(review(*[named("HarbourCluster", OLD)] * 50), converter())
    counting.cancel()
    assert turns >= 49


@pytest.mark.parametrize("asked", [None, [], {}, {"request": {}}, {**review(), "apiVersion": "v2"}])
def test_invalid_reviews(asked: Any) -> None:
    with pytest.raises(ConversionReviewError):
        asyncio.run(respond(asked, converter()))


def test_the_annotation_holds_only_what_would_be_lost() -> None:
    """Proves: CRD-15."""
    domains = {"a": {"controlPlane": True}}
    status = {"ready": True, "failureDomains": domains, "failureReason": "Slow"}

    new = converted(named("HarbourCluster", OLD, spec={"region": "north"}, status=status), NEW)

    assert json.loads(new["metadata"]["annotations"][DATA]) == {
        "apiVersion": f"{GROUP}/{OLD}",
        "status": {"failureReason": "Slow"},
    }


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"apiVersion":"example.com/v1"}', "null"])
def test_an_annotation_of_another_program_is_kept(text: str) -> None:
    obj = named("HarbourCluster", OLD, spec={"region": "north"}, status={"ready": True})
    obj["metadata"]["annotations"] = {DATA: text}

    new = converted(obj, NEW)

    assert new["metadata"]["annotations"] == {DATA: text}
    assert converted(new, OLD) == obj


def test_a_severity_survives_a_change_of_another_condition() -> None:
    times = {"lastTransitionTime": "2025-05-01T10:00:00Z"}
    first = {"type": "A", "status": "False", "severity": "Error", "reason": "Bad", **times}
    second = {"type": "B", "status": "True", **times}
    obj = named("HarbourCluster", OLD, status={"conditions": [first, second]})

    new = converted(obj, NEW)
    new["status"]["conditions"][1]["status"] = "Unknown"
    old = converted(new, OLD)

    assert old["status"]["conditions"] == [first, {**second, "status": "Unknown"}]


def test_kinds_of_other_providers_are_not_converted() -> None:
    with pytest.raises(ConversionError):
        converter().convert({"apiVersion": "v1", "kind": "Secret"}, "v2")


def test_a_field_that_the_kind_keeps_is_converted_and_stays() -> None:
    """Proves: CRD-15."""
    machine = named("HarbourMachine", OLD, status={"ready": True})
    new = converted(machine, NEW)
    assert new["status"] == {"ready": True, "initialization": {"provisioned": True}}
    assert converted(new, OLD)["status"] == {"ready": True}
