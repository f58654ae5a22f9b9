"""Base for all conformance tests: cases, the scenario decorator, and pytest's collection.

pytest looks for ``PROVIDER`` in the module to which the test classes were added.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import ResourceType
from capsmith_runtime.testing.adjustments import find_skip_reason
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest

T = TypeVar("T")
G = TypeVar("G")
E = TypeVar("E", bound=TestEnvironment)
P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Parameters for a class of scenarios: a core version and some of the provider's kinds."""

    provider: ProviderUnderTest
    core_version: str

    @property
    def kinds(self) -> Sequence[str]:
        """Return the names of the kinds that appear in the test id."""
        return ()

    @property
    def id(self) -> str:
        """Return the id of this case's tests."""
        return "-".join(("core", self.core_version, *self.kinds))


class HasResource(Protocol):
    """Protocol for the description of one of the provider's kinds."""

    @property
    def resource(self) -> ResourceType:
        """Return the kind's resource type in the API server."""
        ...


K_co = TypeVar("K_co", bound=HasResource, covariant=True)


@dataclass(frozen=True, kw_only=True)
class KindCase(Case, Generic[K_co]):
    """A test case for one kind and one core version."""

    component: Component
    kind: K_co

    @property
    def kinds(self) -> Sequence[str]:
        """Return the kind's name, as the only item."""
        return (self.kind.resource.kind,)


def kind_cases(
    provider: ProviderUnderTest, controllers: type[G], kinds: Callable[[G], Iterable[K_co]]
) -> list[KindCase[K_co]]:
    """Return a case for each core version and each kind that some groups of controllers serve.

    Only groups of the type ``controllers`` are used; ``kinds`` returns a group's kinds.
    """
    return [
        KindCase(provider=provider, core_version=version, component=component, kind=kind)
        for component, group in provider.groups_of(controllers)
        for version in provider.core_versions
        for kind in kinds(group)
    ]


class Conformance:
    """Base class for scenarios, which run once for each case."""

    slow: ClassVar[bool] = False
    """Whether watches of the fake API server report changes with a delay."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[Case]:
        """Return a provider's cases, or none if the provider lacks the feature."""
        raise NotImplementedError

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test once for each case."""
        if "case" in metafunc.fixturenames:
            found = self.cases(provider_of(metafunc.module))
            reason = find_skip_reason(type(self).__name__, metafunc.function.__name__)
            marks = () if reason is None else (pytest.mark.skip(reason=reason),)
            cases = [pytest.param(case, id=case.id, marks=marks) for case in found]
            metafunc.parametrize("case", cases)

    @pytest.fixture
    def provider(self, request: pytest.FixtureRequest) -> ProviderUnderTest:
        """Return the provider under test."""
        return provider_of(request.module)


def provider_of(module: object) -> ProviderUnderTest:
    """Return the provider that a test module defines as ``PROVIDER``."""
    found = getattr(module, "PROVIDER", None)
    assert isinstance(found, ProviderUnderTest), f"{module} has no PROVIDER"
    return found


def scenario(
    test: Callable[Concatenate[T, E, P], Awaitable[None]],
) -> Callable[Concatenate[T, E, P], None]:
    """Decorate an asynchronous test, so that pytest can run it as a synchronous one.

    The test runs in its environment ``env``, on a virtual clock.
    """

    @functools.wraps(test)
    def run(self: T, env: E, *args: P.args, **kwargs: P.kwargs) -> None:
        env.run(lambda: test(self, env, *args, **kwargs))

    # pytest passes all arguments by name, which Concatenate cannot express.
    return cast(Callable[Concatenate[T, E, P], None], run)
