"""A provider whose bootstrap data a test makes, with the manifests of the example bootstrap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from capsmith_runtime.bootstrap import (
    BootstrapConfigReconciler,
    BootstrapConfigScope,
    BootstrapDocument,
    Waiting,
)
from capsmith_runtime.bootstrap.controller import BootstrapConfigKind
from capsmith_runtime.bootstrap.controllers import BootstrapControllers
from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import ResourceType
from capsmith_runtime.testing.conformance.bootstrap.base import BootstrapConformance
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.golden.expected import expected_folder

REPOSITORY = expected_folder("bootstrap")
GROUP = "bootstrap.cluster.x-k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindleConfigSpec:
    pre_start: tuple[str, ...] = field(default=(), metadata={"json": "preStart"})
    verbosity: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KindleConfigStatus:
    join_method: str | None = field(default=None, metadata={"json": "joinMethod"})


Scope = BootstrapConfigScope[KindleConfigSpec]


class ScriptedReconciler(BootstrapConfigReconciler[KindleConfigSpec]):
    """Bootstrap data are what the script of the test returns."""

    def bootstrap_data(self, config: Scope) -> BootstrapDocument | Waiting:
        raise NotImplementedError


COMPONENT = Component(
    label="bootstrap-kindle",
    namespace="kindle-bootstrap-system",
    contract="v1beta1",
    groups=(
        BootstrapControllers(
            kinds=(
                BootstrapConfigKind(
                    resource=ResourceType(GROUP, "v1alpha1", "KindleConfig", "kindleconfigs"),
                    finalizer=f"kindleconfig.{GROUP}",
                    features=frozenset(),
                    spec=KindleConfigSpec,
                    reconciler=ScriptedReconciler,
                ),
            ),
        ),
    ),
)
PROVIDER = ProviderUnderTest(
    components={"bootstrap": COMPONENT}, repository=REPOSITORY, config=("bootstrap/config",)
)


class Script:
    """Returns what the test says, and records the calls."""

    def __init__(self) -> None:
        self.calls: list[Scope] = []
        self.result: Callable[[Scope], Any] = lambda config: BootstrapDocument(b"data")

    def __call__(self, config: Scope) -> Any:
        self.calls.append(config)
        return self.result(config)


class ScriptedBootstrap(BootstrapConformance):
    """Scenarios with a script for ``bootstrap_data``."""

    @pytest.fixture
    def script(self, monkeypatch: pytest.MonkeyPatch) -> Script:
        script = Script()
        monkeypatch.setattr(
            ScriptedReconciler, "bootstrap_data", lambda self, config: script(config)
        )
        return script
