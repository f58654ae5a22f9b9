"""The runtime extension over TLS, as core calls it, and the manifests around it."""

from __future__ import annotations

import re

from capsmith_runtime.extension.dispatch import API_VERSION
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.extension.server import (
    ExtensionCase,
    ExtensionConformance,
    _role,
)
from capsmith_runtime.testing.extension.environment import ExtensionEnvironment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("extension")


@run_with("extension")
class TestRuntimeExtension(ExtensionConformance):
    """The runtime extension over TLS, as core calls it, and the manifests around it."""

    @scenario
    async def test_core_discovers_the_hooks_of_provider_yaml(
        self, env: ExtensionEnvironment
    ) -> None:
        """Proves: RX-03, RX-04."""
        answer = await env.call("discovery", {})
        handlers = answer["handlers"]

        assert answer["status"] == "Success"
        assert [each["requestHook"]["hook"] for each in handlers] == [
            handler.hook for handler in env.extension.handlers
        ]
        assert {each["requestHook"]["apiVersion"] for each in handlers} == {API_VERSION}
        names = [each["name"] for each in handlers]
        assert len(set(names)) == len(names)
        for each in handlers:
            assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", each["name"])
            assert 1 <= each["timeoutSeconds"] <= 30
            assert each["failurePolicy"] in ("Fail", "Ignore")

    @scenario
    async def test_the_extension_config_is_deleted_with_the_extension(
        self, env: ExtensionEnvironment, case: ExtensionCase
    ) -> None:
        """Core does not start while a registered extension is unreachable.

        Proves: RX-01, RX-09.
        """
        found = env.config()
        assert found["metadata"]["labels"] == {"cluster.x-k8s.io/provider": env.component.label}
        (owner,) = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("ClusterRole", env.extension.registration.role)
        assert owner["name"] == f"{env.component.namespace}-{_role(case)['metadata']['name']}"
        assert found["spec"]["clientConfig"]["service"] == {
            "namespace": env.component.namespace,
            "name": env.extension.registration.service,
        }

    @scenario
    async def test_fields_set_by_users_are_kept(self, env: ExtensionEnvironment) -> None:
        """Proves: RX-01."""
        config, key = env.config(), env.extension.registration.name
        settings = {"spec": {"settings": {"a": "b"}}}
        env.api.change("ExtensionConfig", NamespacedName("", key), settings)
        await env.stop()
        other = env.new_certificate()
        env.start()
        await env.eventually("the authority is another one", lambda: env.trusted() == other)
        assert env.config()["spec"]["settings"] == {"a": "b"}
        assert env.config()["metadata"]["uid"] == config["metadata"]["uid"]

    @scenario
    async def test_core_trusts_a_certificate_that_was_replaced(
        self, env: ExtensionEnvironment
    ) -> None:
        """Proves: MG-04, RX-03."""
        other = env.new_certificate()
        await env.eventually("the authority is another one", lambda: env.trusted() == other)
        assert (await env.call("discovery", {}))["status"] == "Success"
