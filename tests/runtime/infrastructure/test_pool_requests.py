"""Requests of a pool's steps that the API server rejects."""

from __future__ import annotations

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON
from tests.runtime.infrastructure.scripted_pools import POOL, environment


@pytest.mark.parametrize("rejections", [1, 2])
def test_a_rejected_creation_is_reported_and_replaced(rejections: int) -> None:
    """The machines of the same step whose creation succeeded are kept."""
    rejected: list[str] = []

    def reject(verb: str, kind: str, body: JSON) -> None:
        if (verb, kind) == ("create", POOL.machines.kind) and len(rejected) < rejections:
            rejected.append(body["metadata"]["name"])
            raise create_api_error(403, "Forbidden", "exceeded quota")

    async def scenario() -> None:
        env.api.fault = reject
        env.add_pool(3)
        await env.eventually("reported", lambda: "exceeded quota" in str(env.infra_pool()))
        await env.settled(3)
        assert len(rejected) == rejections
        assert not env.names() & set(rejected)
        # Each request counts, and none is sent beyond those for the machines that are missing.
        assert len(env.created()) == 3 + rejections

    env = environment()
    env.run(scenario)
