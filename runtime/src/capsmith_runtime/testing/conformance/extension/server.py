"""The runtime extension over TLS, as core calls it, and its manifests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.extension.controllers import RuntimeExtensionServer
from capsmith_runtime.extension.dispatch import API_VERSION, Handler
from capsmith_runtime.testing.conformance.base import Case, Conformance, scenario
from capsmith_runtime.testing.extension import REQUESTS
from capsmith_runtime.testing.extension.environment import ExtensionEnvironment
from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.webhook import server
from capsmith_runtime.webhook.options import CERTIFICATES


@dataclass(frozen=True, kw_only=True)
class ExtensionCase(Case):
    """A test case for a runtime extension and the version of core that calls it."""

    component: Component
    extension: RuntimeExtensionServer

    @property
    def manifests(self) -> Manifests:
        """Return only the extension's manifests; other components may serve webhooks as well."""
        return self.provider.manifests_of(self.component)


@dataclass(frozen=True, kw_only=True)
class HookCase(ExtensionCase):
    """A test case for one hook of a runtime extension."""

    handler: Handler

    @property
    def id(self) -> str:
        """Return the hook's name, which is the case's id in pytest."""
        return self.handler.hook


class ExtensionConformance(Conformance):
    """Base class for scenarios that run a runtime extension's manager."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[ExtensionCase]:
        """Return the extension's case, or none if the provider has no extension."""
        return [
            ExtensionCase(
                provider=provider,
                core_version="v1beta2",
                component=component,
                extension=extension,
            )
            for component, extension in provider.groups_of(RuntimeExtensionServer)
        ]

    @pytest.fixture
    def env(
        self, case: ExtensionCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> ExtensionEnvironment:
        """Return the running extension, with its ExtensionConfig."""
        monkeypatch.setattr(server, "POLL_SECONDS", 0.02)
        return ExtensionEnvironment(
            case.provider, case.component, extension=case.extension, folder=tmp_path
        )


class TestRuntimeExtensionHooks(ExtensionConformance):
    """Scenarios that run for each of the runtime extension's hooks."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[HookCase]:
        """Return one case for each hook."""
        return [
            HookCase(
                provider=provider,
                core_version=case.core_version,
                component=case.component,
                extension=case.extension,
                handler=handler,
            )
            for case in super().cases(provider)
            for handler in case.extension.handlers
        ]

    @scenario
    async def test_a_hook_answers_the_same_request_the_same_way(
        self, env: ExtensionEnvironment, case: HookCase
    ) -> None:
        """The same request always gets the same response, even if the hook rejects the request.

        Core writes the messages of rejections into conditions, so these must not vary either.

        Proves: RX-03, RX-06, RX-10.
        """
        handler, hook = case.handler, case.handler.hook
        path = f"{hook.lower()}/{handler.name}"
        body = {"apiVersion": API_VERSION, "kind": f"{hook}Request", **REQUESTS[hook]}
        first, again = await env.call(path, body), await env.call(path, body)

        assert first == again
        assert (first["apiVersion"], first["kind"]) == (API_VERSION, f"{hook}Response")
        assert first["status"] in ("Success", "Failure")
        assert "see the log of the extension" not in first.get("message", "")


class TestRuntimeExtensionManifests(ExtensionConformance):
    """The runtime extension's Service, certificate and permissions."""

    def test_the_certificate_is_issued_for_the_service(self, case: ExtensionCase) -> None:
        """The certificate is valid for the Service's DNS name, and mounted where it is read.

        Proves: MG-04, MG-09, RX-08, SEC-06.
        """
        service, namespace = case.extension.registration.service, case.component.namespace
        documents = case.manifests.documents("certmanager")
        certificates = [each["spec"] for each in documents if each["kind"] == "Certificate"]
        (serving,) = (spec for spec in certificates if "dnsNames" in spec)
        (authority,) = (spec for spec in certificates if spec.get("isCA"))

        assert f"{service}.{namespace}.svc" in serving["dnsNames"]
        assert authority["commonName"] == namespace
        assert service == f"{namespace}-{_only(case, 'webhook', 'Service')['metadata']['name']}"
        pod = _only_pod(case)
        secrets = [each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each]
        assert serving["secretName"] in secrets
        mounts = {each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
        assert Path(CERTIFICATES).as_posix() in mounts

    def test_the_service_targets_the_port_of_the_server(self, case: ExtensionCase) -> None:
        """The Service has port 443, which core uses by default, and targets the server's port.

        Proves: MG-08.
        """
        (port,) = _only(case, "webhook", "Service")["spec"]["ports"]
        container = _only_pod(case)["containers"][0]
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}

        assert port["port"] == 443, "the default of core (RX-01)"
        assert ports[port["targetPort"]] == 9443

    def test_the_manager_may_only_register_itself(self, case: ExtensionCase) -> None:
        """The manager may write only its own ExtensionConfig, and read only its own ClusterRole.

        Proves: RX-09, RX-17.
        """
        registration = case.extension.registration
        rules = {rule["apiGroups"][0]: rule for rule in _role(case)["rules"]}
        itself, owner = rules["runtime.cluster.x-k8s.io"], rules["rbac.authorization.k8s.io"]
        assert itself["resourceNames"] == [registration.name]
        assert set(itself["verbs"]) == {"create", "delete", "patch"}
        assert (owner["resourceNames"], owner["verbs"]) == ([registration.role], ["get"])


def _role(case: ExtensionCase) -> dict[str, Any]:
    """Return the role of the extension's manager, as opposed to the roles for users."""
    roles = (each for each in case.manifests.documents("rbac") if each["kind"] == "ClusterRole")
    return next(each for each in roles if "extensionconfigs" in str(each["rules"]))


def _only(case: ExtensionCase, folder: str, kind: str) -> dict[str, Any]:
    (found,) = (each for each in case.manifests.documents(folder) if each["kind"] == kind)
    return found


def _only_pod(case: ExtensionCase) -> dict[str, Any]:
    pod: dict[str, Any] = _only(case, "manager", "Deployment")["spec"]["template"]["spec"]
    return pod
