"""Which variables of a cluster template a user has to set."""

from __future__ import annotations

from capsmith.manifests.template_values import find_missing_values

TEMPLATE = """\
name: ${CLUSTER_NAME}
namespace: ${NAMESPACE}
replicas: ${CONTROL_PLANE_MACHINE_COUNT}
host: ${CONTROL_PLANE_ENDPOINT_HOST}
port: ${CONTROL_PLANE_ENDPOINT_PORT:=6443}
token: ${ACME_TOKEN}
"""


def test_variables_without_value_and_default_are_missing() -> None:
    assert find_missing_values(TEMPLATE, {}) == ["ACME_TOKEN", "CONTROL_PLANE_ENDPOINT_HOST"]


def test_an_empty_value_counts_as_none() -> None:
    values = {"ACME_TOKEN": "", "CONTROL_PLANE_ENDPOINT_HOST": "10.0.0.1"}
    assert find_missing_values(TEMPLATE, values) == ["ACME_TOKEN"]
