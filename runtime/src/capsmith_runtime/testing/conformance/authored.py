"""Checks that samples and templates match the CRDs, so that an API server accepts them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from capsmith_runtime.testing.authored_objects import problems
from capsmith_runtime.testing.conformance.base import Case, Conformance
from capsmith_runtime.testing.provider import ProviderUnderTest

TEMPLATES = "templates"


class TestSamples(Conformance):
    """An API server would accept the repository's samples, because they match the CRDs."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[Case]:
        """Return one case, or none if the provider has no samples."""
        has_samples = any(each.is_dir() for each in _paths(provider, _samples(provider)))
        return [Case(provider=provider, core_version="")] if has_samples else []

    def test_samples_are_valid(self, provider: ProviderUnderTest) -> None:
        found = problems(provider.repository, _samples(provider), provider.manifests.crds())
        assert list(found) == []


class TestTemplates(Conformance):
    """An API server accepts the provider's objects in cluster templates and ClusterClasses."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[Case]:
        """Return one case, or none if the provider has no templates."""
        has_templates = (provider.repository / TEMPLATES).is_dir()
        return [Case(provider=provider, core_version="")] if has_templates else []

    def test_templates_are_valid(self, provider: ProviderUnderTest) -> None:
        found = problems(provider.repository, [TEMPLATES], provider.manifests.crds())
        assert list(found) == []


def _samples(provider: ProviderUnderTest) -> list[str]:
    return [f"{each}/samples" for each in provider.config]


def _paths(provider: ProviderUnderTest, folders: Sequence[str]) -> list[Path]:
    return [provider.repository / each for each in folders]
