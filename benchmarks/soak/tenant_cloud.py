"""A cloud for each tenant, some of which have a fault; part of the observed manager.

A file in the folder of faults, named after a tenant, holds the fault: ``hang``, ``refuse`` or
``late``.  Without a file, a tenant's cloud is in order.
"""

from __future__ import annotations

import functools
import importlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from capsmith_runtime.errors import ReconcileError
from capsmith_runtime.infrastructure import Credentials, SessionFactory

_POLL_SECONDS = 0.05
_LATE_SEARCHES = 3
_CALLS = ("find_", "create_", "delete_")


class TenantCloud:
    """The simulated cloud as one tenant's session sees it."""

    def __init__(self, cloud: Any, fault: Callable[[], str]) -> None:
        self._cloud = cloud
        self._fault = fault
        self._searches: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cloud, name)
        return functools.partial(self._call, name, method) if name.startswith(_CALLS) else method

    def _call(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        self._hang()
        result = method(*arguments)
        is_late = name == "find_server" and result is not None and self._fault() == "late"
        return None if is_late and self._is_hidden(str(arguments[0])) else result

    def _hang(self) -> None:
        if self._fault() == "hang":
            while self._fault() == "hang":
                time.sleep(_POLL_SECONDS)
            raise ReconcileError("CloudUnavailable", "the connection timed out")

    def _is_hidden(self, external_id: str) -> bool:
        with self._lock:
            self._searches[external_id] += 1
            return self._searches[external_id] <= _LATE_SEARCHES


def separate_tenants(package: str, faults: Path) -> None:
    """Give the reconcilers of a generated package a session for each tenant.

    The token of an identity begins with the tenant's name and a dot.
    """
    cloud = importlib.import_module(f"{package}.cloud").SimulatedCloud()

    class Sessions(SessionFactory[TenantCloud]):
        def open(self, credentials: Credentials) -> TenantCloud:
            tenant = credentials["token"].partition(".")[0]
            fault = functools.partial(_read, faults / tenant)
            if fault() == "refuse":
                raise ReconcileError("Unauthorized", "401 Unauthorized")
            return TenantCloud(cloud, fault)

    for kind in ("Cluster", "Machine"):
        module = importlib.import_module(f"{package}.controllers.acme_{kind.lower()}")
        reconciler = getattr(module, f"Acme{kind}Reconciler")
        reconciler.session_factory = Sessions
        for name in ("reconcile_normal", "reconcile_delete"):
            setattr(reconciler, name, _with_session(reconciler, name, Sessions))


def _with_session(
    reconciler: type[Any], name: str, factory: type[SessionFactory[TenantCloud]]
) -> Callable[..., Any]:
    """Return a method that works with the cloud of the object's tenant."""
    method = getattr(reconciler, name)

    @functools.wraps(method)
    def call(_: Any, scope: Any) -> Any:
        return method(reconciler(scope.session(factory)), scope)

    return call


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
