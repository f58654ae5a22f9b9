"""Objects that the API server stores, and that fail no review: one failure fails all lists."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest

from capsmith_runtime.conversion.controllers import PATH, THREAD_BYTES
from capsmith_runtime.conversion.objects import ANNOTATION, MAX_ANNOTATION_BYTES
from capsmith_runtime.kube.http_server import Request
from tests.runtime.conversion.kinds import NEW, OLD, named, resources
from tests.runtime.conversion.test_versions import Webhook

KIND = "HarbourCluster"
GROUP = str(resources()[KIND].group)
DEEP = "deep part"
"""Placeholder in an object; its place in the body of the request gets a deep value."""
LEVELS = (300, 450, 700, 1_500, 9_000)
"""Numbers of levels; the API server stores objects with up to 10,000."""


def nest(levels: int) -> str:
    return '{"f:a":' * levels + '"}\\""' + "}" * levels


def other(version: str) -> str:
    return NEW if version == OLD else OLD


async def convert(version: str, deep: str = "null", **parts: Any) -> dict[str, Any]:
    """Return the object in the other version; the placeholder is there as it was.

    Another object is in the same review.
    """
    objects = [named(KIND, version, **parts), named(KIND, version, spec={}, status={})]
    request = {"uid": "7", "desiredAPIVersion": f"{GROUP}/{other(version)}", "objects": objects}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "request": request}
    body = json.dumps(review).replace(f'"{DEEP}"', deep)
    response = await Webhook().handle(Request("POST", PATH, body.encode()))
    assert response.status == HTTPStatus.OK, response.body[:200]
    content = response.body.decode()
    if deep != "null":
        content = content.replace(deep, f'"{DEEP}"')
    found = json.loads(content)["response"]
    assert found["result"] == {"status": "Success"}
    first, second = found["convertedObjects"]
    assert second["apiVersion"] == first["apiVersion"] == f"{GROUP}/{other(version)}"
    assert isinstance(first, dict)
    return first


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("version", [OLD, NEW])
async def test_deep_managed_fields(version: str, levels: int) -> None:
    """Any user who may write an object may write them, whatever the schema of its kind."""
    entry = {"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": DEEP}
    metadata = {"name": "x", "namespace": "d", "uid": "1", "managedFields": [entry]}
    found = await convert(version, nest(levels), metadata=metadata, spec={}, status={})
    assert found["metadata"]["managedFields"] == [entry]


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("padding", ["", "x" * THREAD_BYTES], ids=["small", "large"])
@pytest.mark.parametrize("version", [OLD, NEW])
async def test_a_deep_field(version: str, padding: str, levels: int) -> None:
    """The schema of a field may preserve whatever it contains."""
    spec = {"options": {"deep": DEEP, "padding": padding, "list": [1, "}", '"{']}}
    found = await convert(version, nest(levels), spec=spec, status={})
    assert found["spec"] == spec


async def test_a_deep_field_that_the_other_version_lacks() -> None:
    """The annotation, which has a limit, keeps no deep values."""
    status = {"failureReason": {"a": DEEP}, "failureMessage": "m"}
    found = await convert(OLD, nest(1_500), spec={}, status=status)
    text = found["metadata"]["annotations"][ANNOTATION]
    assert json.loads(text)["status"]["failureMessage"] == "m"
    assert len(text) < 1_500


@pytest.mark.parametrize(
    "status",
    [
        '{"failureMessage":"\\ud800"}',
        '{"\\udfff":"a"}',
        '{"failureMessage":NaN,"replicas":-Infinity}',
        '{"replicas":1e999}',
        '{"replicas":1' + "0" * 400 + "}",
        '{"replicas":1' + "0" * 5_000 + "}",
        '{"failureReason":' + "[" * 400 + "]" * 400 + "}",
        '{"failureReason":' + nest(900) + "}",
    ],
    ids=["surrogate", "key", "nan", "inf", "int", "long", "list", "deep"],
)
@pytest.mark.parametrize("version", [OLD, NEW])
async def test_an_annotation_with_values_that_no_response_can_have(
    version: str, status: str
) -> None:
    text = f'{{"apiVersion":"{GROUP}/{other(version)}","status":{status}}}'
    metadata = {"name": "x", "uid": "1", "annotations": {ANNOTATION: text}}
    found = await convert(version, metadata=metadata, spec={}, status={})
    assert found["metadata"]["name"] == "x"


@pytest.mark.parametrize("used", [MAX_ANNOTATION_BYTES - 1, MAX_ANNOTATION_BYTES - 60])
async def test_annotations_stay_below_the_limit_of_the_api_server(used: int) -> None:
    """It refuses a response with larger ones, and with it the whole list."""
    status = {"failureReason": "r", "failureMessage": "m"}
    annotations = {"a": "é" * (used // 2 - 1)}
    metadata = {"name": "x", "uid": "1", "annotations": annotations}
    found = await convert(OLD, metadata=metadata, spec={}, status=status)
    assert found["metadata"]["annotations"] == annotations


async def test_an_annotation_that_was_below_the_limit_stays() -> None:
    """Its data are older than the object, but no list fails."""
    text = json.dumps({"apiVersion": f"{GROUP}/{NEW}", "status": {"q": "w"}})
    rest = MAX_ANNOTATION_BYTES - len(text) - len(ANNOTATION) - 1
    annotations = {"a": "x" * rest, ANNOTATION: text}
    metadata = {"name": "x", "uid": "1", "annotations": annotations}
    status = {"failureReason": "r", "failureMessage": "m" * 300}
    found = await convert(OLD, metadata=metadata, spec={}, status=status)
    assert found["metadata"]["annotations"] == annotations
