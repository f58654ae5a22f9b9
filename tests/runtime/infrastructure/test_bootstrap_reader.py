"""Bootstrap data that a machine's reconciler reads."""

from __future__ import annotations

import base64
from typing import cast

import pytest

from capsmith_runtime.infrastructure.prerequisites import create_bootstrap_reader
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType
from capsmith_runtime.testing.core import core_machine


class OneSecret:
    """A client of an API server with one bootstrap Secret."""

    def __init__(self, data: dict[str, str]) -> None:
        self._data = {name: base64.b64encode(each.encode()).decode() for name, each in data.items()}

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        return {"metadata": {"name": key.name, "namespace": key.namespace}, "data": self._data}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"format": "ignition"}, "ignition"),
        ({"format": ""}, "cloud-config"),
        ({}, "cloud-config"),
    ],
)
async def test_data_without_a_format_are_those_of_cloud_init(
    data: dict[str, str], expected: str
) -> None:
    client = cast(KubeClient, OneSecret({"value": "#!/bin/sh", **data}))

    found = await create_bootstrap_reader(client, core_machine())()

    assert (found.value, found.format) == (b"#!/bin/sh", expected)
