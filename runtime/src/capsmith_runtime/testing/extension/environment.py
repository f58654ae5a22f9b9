"""A fake management cluster whose core reads the ExtensionConfig and calls the extension."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
from pathlib import Path
from typing import Self

import trustme

from capsmith_runtime.component import Component
from capsmith_runtime.extension.controllers import RuntimeExtensionGroup, RuntimeExtensionServer
from capsmith_runtime.extension.dispatch import API_VERSION
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.options import Options, parse
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.fake_api import FakeApi, merged
from capsmith_runtime.testing.limits import limits
from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.testing.provider import ProviderUnderTest, replace_group
from capsmith_runtime.webhook.options import WEBHOOK


class ExtensionApi(FakeApi):
    """A fake API server that also serves ExtensionConfigs, as core does with its feature gate."""

    def __init__(self, manifests: Manifests, role_name: str) -> None:
        super().__init__("v1beta2", manifests)
        role = {"name": role_name}
        self.add(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": role,
            }
        )

    async def served_versions(self, group: str) -> tuple[str, ...]:
        """Return the served versions of core's groups and of ExtensionConfigs."""
        if group == "runtime.cluster.x-k8s.io":
            return ("v1beta2", "v1alpha1")
        return await super().served_versions(group)

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        """Apply an object; fields that only an earlier apply has set are kept."""
        key = NamespacedName("", obj["metadata"]["name"])
        old = self.find(resource.kind, key)
        return self.add(obj) if old is None else self.change(resource.kind, key, merged(old, obj))


class ExtensionEnvironment(TestEnvironment):
    """The running manager of an extension with the author's code, called over TLS."""

    def __init__(
        self,
        provider: ProviderUnderTest,
        component: Component,
        *,
        extension: RuntimeExtensionServer,
        folder: Path,
    ) -> None:
        super().__init__(provider, component, "v1beta2")
        self.extension = extension
        self.api = ExtensionApi(self.manifests, extension.registration.role)
        self._folder = folder
        self._servers: list[RuntimeExtensionGroup] = []
        self.component = replace_group(self.component, extension, self._group)

    async def __aenter__(self) -> Self:
        self.new_certificate()
        await super().__aenter__()
        await self.eventually("it is registered", self.trusted)
        return self

    def options(self) -> Options:
        """Return the manager's options, read from a command line."""
        arguments = [
            "--diagnostics-address=127.0.0.1:0",
            "--webhook-host=127.0.0.1",
            "--webhook-port=0",
            f"--webhook-cert-dir={self._folder}",
        ]
        options = parse(arguments, ["runtime-extension"], [WEBHOOK])
        return options.with_default_namespace(self.component.namespace)

    def new_certificate(self) -> bytes:
        """Write new certificate files, as cert-manager does; return the CA certificate."""
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1")
        issued.private_key_pem.write_to_path(self._folder / "tls.key")
        issued.cert_chain_pems[0].write_to_path(self._folder / "tls.crt")
        authority.cert_pem.write_to_path(self._folder / "ca.crt")
        return authority.cert_pem.bytes()

    def config(self) -> JSON:
        """Return the ExtensionConfig, or an empty object if it does not exist yet."""
        found = self.api.find(
            "ExtensionConfig", NamespacedName("", self.extension.registration.name)
        )
        return found or {"spec": {"clientConfig": {}}}

    def trusted(self) -> bytes:
        """Return the CA certificate in the ExtensionConfig, which core trusts."""
        return base64.b64decode(self.config()["spec"]["clientConfig"].get("caBundle", ""))

    async def call(self, path: str, body: JSON) -> JSON:
        """Call the extension as core does, trusting only the CA bundle in the ExtensionConfig."""
        status, text = await asyncio.to_thread(self._call, f"/{API_VERSION}/{path}", body)
        assert status == 200, text
        answer: JSON = json.loads(text)
        return answer

    def _group(self, caches: Caches, context: ControllerContext) -> RuntimeExtensionGroup:
        self._servers.append(self.extension(caches, context))
        return self._servers[-1]

    def _call(self, path: str, body: JSON) -> tuple[int, bytes]:
        # Not Python's default, which since 3.13 rejects certificates that core accepts.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.trusted().decode())
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._servers[-1].port, context=context, timeout=limits().wait_seconds
        )
        try:
            connection.request("POST", f"{path}?timeout=10s", json.dumps(body))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()
