"""The kubeconfig that authors hand to other tools."""

from __future__ import annotations

import base64

import pytest

from capsmith_runtime.kube.client import JSON
from capsmith_runtime.workload.client import UnusableKubeconfigError, check_kubeconfig
from capsmith_runtime.workload.kubeconfig import Access, parse, render

ACCESS = Access(server="https://10.0.0.1:6443", token="t")
RUNS_A_PROGRAM = render("demo", ACCESS).replace(
    b"token: t", b"exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}"
)


def secret(content: bytes) -> JSON:
    return {"data": {"value": base64.b64encode(content).decode()}}


def test_it_has_the_checked_access_and_nothing_else() -> None:
    found = check_kubeconfig("demo", secret(render("other", ACCESS) + b"extensions: []\n"))
    assert found == render("demo", ACCESS)
    assert parse(found) == ACCESS


def test_one_that_runs_a_program_is_refused() -> None:
    """A tool would run it in the manager's container."""
    assert b"exec" in RUNS_A_PROGRAM
    with pytest.raises(UnusableKubeconfigError, match="exec"):
        check_kubeconfig("demo", secret(RUNS_A_PROGRAM))


@pytest.mark.parametrize("data", [{}, {"value": ""}, {"value": "no base64"}])
def test_a_secret_without_kubeconfig_is_refused(data: JSON) -> None:
    with pytest.raises(UnusableKubeconfigError, match="value"):
        check_kubeconfig("demo", {"data": data})
