"""Cases and environments of runtime extensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.extension.controllers import RuntimeExtensionServer
from capsmith_runtime.extension.dispatch import Handler
from capsmith_runtime.testing.conformance.base import Case, Conformance
from capsmith_runtime.testing.extension.environment import ExtensionEnvironment
from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.webhook import server


@dataclass(frozen=True, kw_only=True)
class ExtensionCase(Case):
    """A case of a runtime extension, with a version of core that calls it."""

    component: Component
    extension: RuntimeExtensionServer

    @property
    def manifests(self) -> Manifests:
        """The manifests of the extension alone; other components may serve webhooks as well."""
        return self.provider.manifests_of(self.component)


@dataclass(frozen=True, kw_only=True)
class HookCase(ExtensionCase):
    """A case of one hook of a runtime extension."""

    handler: Handler

    @property
    def id(self) -> str:
        """The name of the hook."""
        return self.handler.hook


class ExtensionConformance(Conformance):
    """Base class of scenarios with the manager of a runtime extension."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[ExtensionCase]:
        """Return the case of the extension; none if the provider has none."""
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
        """The running extension, with its ExtensionConfig."""
        monkeypatch.setattr(server, "POLL_SECONDS", 0.02)
        return ExtensionEnvironment(
            case.provider, case.component, extension=case.extension, folder=tmp_path
        )
