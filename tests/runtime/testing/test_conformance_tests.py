"""No class of conformance tests is left out, and a provider gets those for what it has."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.ipam.controllers import IPAMControllers
from capsmith_runtime.testing import conformance
from capsmith_runtime.testing.conformance import Conformance, conformance_tests
from capsmith_runtime.testing.provider import ProviderUnderTest

SLICES = sorted(each.name for each in pkgutil.iter_modules(conformance.__path__) if each.ispkg)


def defined_in(name: str) -> set[str]:
    package = importlib.import_module(f"{conformance.__name__}.{name}")
    found = set()
    for each in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{each.name}")
        for attribute, value in vars(module).items():
            if inspect.isclass(value) and issubclass(value, Conformance):
                found |= {attribute} if attribute.startswith("Test") else set()
    return found


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_exports_all_its_test_classes(name: str) -> None:
    package = importlib.import_module(f"{conformance.__name__}.{name}")
    assert set(package.__all__) == defined_in(name)
    assert all(getattr(package, each).__doc__ for each in package.__all__)


def test_a_provider_without_controllers_has_no_tests(tmp_path: Path) -> None:
    provider = ProviderUnderTest(components={"ipam": component()}, repository=tmp_path)
    assert conformance_tests(provider) == {}


def test_what_a_provider_lacks_is_not_collected(tmp_path: Path) -> None:
    with_controllers = component(IPAMControllers([]))
    provider = ProviderUnderTest(components={"ipam": with_controllers}, repository=crds(tmp_path))
    assert conformance_tests(provider) == {}


def component(*groups: IPAMControllers) -> Component:
    return Component(label="ipam-x", namespace="x-system", contract="v1beta2", groups=groups)


def crds(repository: Path) -> Path:
    folder = repository / "config" / "crd"
    folder.mkdir(parents=True)
    (folder / "pools.yaml").write_text(
        "kind: CustomResourceDefinition\n"
        "metadata: {name: pools, labels: {cluster.x-k8s.io/v1beta2: v1}}\n"
        "spec: {names: {kind: Pool}}\n"
    )
    return repository
