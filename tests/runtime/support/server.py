"""A real etcd and kube-apiserver with one kind, Widget."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.clusters.processes.kubeconfig import render_token_kubeconfig, request_token
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import Process
from capsmith.clusters.processes.servers import ApiServer, Etcd
from capsmith.clusters.processes.tools import Toolbox
from capsmith.clusters.processes.wait import eventually

from .proxy import FaultProxy

JSON = dict[str, Any]

GROUP = "runtime.capsmith.test"
API = f"{GROUP}/v1"
ACCOUNT = "operator"
_OPEN: JSON = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SPEC: JSON = {**_OPEN, "properties": {"color": {"type": "string"}}}
_CRD: JSON = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _SPEC, "status": _OPEN},
                    }
                },
            }
        ],
    },
}
_RULES: list[JSON] = [
    {"apiGroups": [GROUP], "resources": ["widgets", "widgets/status"], "verbs": ["*"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
]


class Api:
    """Everything behind the proxy."""

    def __init__(self, tools: Toolbox, folder: Path) -> None:
        self.folder = folder
        self.pki = Pki(folder / "pki")
        self._etcd = Etcd(tools, folder)
        self.server = ApiServer(tools, self.pki, self._etcd, folder, "runtime")

    @property
    def client(self) -> KubeClient:
        """Return the administrator's client, which bypasses the proxy."""
        return self.server.client

    @property
    def processes(self) -> list[Process]:
        """Return etcd and the API server, in the order in which they must be started."""
        return [self._etcd.process, self.server.process]

    def start(self) -> None:
        self._etcd.start()
        self.server.start()
        self.client.create(_CRD)
        self._allow_account()
        eventually(self._served, timeout=120, what="the Widget kind is served")

    def stop(self) -> None:
        self.server.stop()
        self._etcd.stop()

    def crash(self) -> None:
        """Kill the API server and start it again; `wait_ready` waits until it is ready."""
        self.server.process.kill()
        self.server.process.start()  # processes are started from the main thread only

    def wait_ready(self) -> None:
        self.server.process.wait_ready(self._served)

    async def restart(self) -> None:
        """Restart etcd and the API server while the event loop continues."""
        self.crash()
        await asyncio.to_thread(self.wait_ready)

    def back_up(self) -> Path:
        """Return a copy of etcd's data, for which both servers are killed and started again."""
        copy = self.folder / "backup"
        self._kill()
        shutil.copytree(self._data, copy)
        self._start_again()
        self.wait_ready()
        return copy

    async def restore(self, backup: Path) -> None:
        """Replace etcd's data by a copy, as from a backup, while the event loop continues."""
        self._kill()
        shutil.rmtree(self._data)
        shutil.copytree(backup, self._data)
        self._start_again()
        await asyncio.to_thread(self.wait_ready)

    def new_proxy(self) -> FaultProxy:
        return FaultProxy(urlsplit(self.server.url).port or 0, self.pki)

    def new_token(self, account: str = ACCOUNT) -> str:
        return request_token(self.client, "default", account)

    def new_account(self, namespaces: Iterable[str]) -> str:
        """Create a ServiceAccount with the operator's rights in these namespaces only."""
        rbac, name = "rbac.authorization.k8s.io", f"a-{uuid.uuid4().hex[:8]}"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        account = {"name": name, "namespace": "default"}
        self.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        for namespace in namespaces:
            common = {
                "apiVersion": f"{rbac}/v1",
                "metadata": {"name": name, "namespace": namespace},
            }
            role = {"apiGroup": rbac, "kind": "Role", "name": name}
            self.client.create({**common, "kind": "Role", "rules": _RULES})
            binding = {"kind": "RoleBinding", "roleRef": role, "subjects": [subject]}
            self.client.create({**common, **binding})
        return name

    def kubeconfig(self, url: str, token: str) -> str:
        """Return a kubeconfig for the operator's account."""
        return render_token_kubeconfig(url, self.pki.ca, token)

    def new_namespace(self) -> str:
        name = f"n-{uuid.uuid4().hex[:8]}"
        self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    def create(self, namespace: str, name: str, **spec: object) -> JSON:
        metadata = {"namespace": namespace, "name": name, "labels": {"case": namespace}}
        widget = {"apiVersion": API, "kind": "Widget", "metadata": metadata, "spec": spec}
        return self.client.create(widget)

    def widgets(self, namespace: str) -> list[JSON]:
        return self.client.list(API, "Widget", namespace)

    def get(self, namespace: str, name: str) -> JSON:
        return self.client.get(API, "Widget", name, namespace)

    def change(self, namespace: str, name: str, **spec: object) -> JSON:
        return self.client.patch(_named(namespace, name), {"spec": spec})

    def delete(self, namespace: str, name: str) -> None:
        self.client.delete(_named(namespace, name))

    def compact(self) -> None:
        """Make etcd forget all history."""
        answer = self._etcd.call("kv/range", {"key": "AA=="})
        revision = answer["header"]["revision"]
        self._etcd.call("kv/compaction", {"revision": revision, "physical": True})

    @property
    def _data(self) -> Path:
        return self.folder / "etcd-data"

    def _kill(self) -> None:
        self.server.process.kill()
        self._etcd.process.kill()

    def _start_again(self) -> None:
        self._etcd.process.start()
        self.server.process.start()

    def _allow_account(self) -> None:
        rbac, role = "rbac.authorization.k8s.io", {"name": ACCOUNT}
        account = {"name": ACCOUNT, "namespace": "default"}
        eventually(self._default_namespace, timeout=120, what="the default namespace")
        self.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        common = {"apiVersion": f"{rbac}/v1", "metadata": role}
        self.client.create({**common, "kind": "ClusterRole", "rules": _RULES})
        reference = {"apiGroup": rbac, "kind": "ClusterRole", **role}
        subjects = [{"kind": "ServiceAccount", **account}]
        binding = {"kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects}
        self.client.create({**common, **binding})

    def _default_namespace(self) -> bool:
        return self.client.find("v1", "Namespace", "default") is not None

    def _served(self) -> bool:
        try:
            self.client.list(API, "Widget")
        except (ApiError, LookupError, OSError):
            return False
        return True


def _named(namespace: str, name: str) -> JSON:
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": API, "kind": "Widget", "metadata": metadata}
