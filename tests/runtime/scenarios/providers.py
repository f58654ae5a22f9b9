"""Providers that capsmith generates from its examples, to run scenarios of the library with."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from capsmith_runtime.testing.conformance import Case, Conformance
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.golden.cases import EXAMPLES, generated
from tests.golden.cases import Case as Example

C = TypeVar("C", bound=type[Conformance])


@cache
def provider(example: str) -> ProviderUnderTest:
    """Return the provider of an example, as its own conformance tests describe it.

    The repository is generated once a process; the runtime is that of this checkout, not its copy.
    """
    return _load(Example(example, EXAMPLES / example / "provider.yaml"), _make_folder())


@cache
def provider_of(name: str, text: str) -> ProviderUnderTest:
    """Return the provider of a ``provider.yaml``, as its own conformance tests describe it.

    The ``name`` must be unique among the tests.
    """
    root = _make_folder()
    spec = root / name / "provider.yaml"
    spec.parent.mkdir()
    spec.write_text(text, encoding="utf-8")
    return _load(Example(name, spec), root)


def _make_folder() -> Path:
    root = Path(tempfile.mkdtemp(prefix="capsmith-scenarios-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


def _load(case: Example, root: Path) -> ProviderUnderTest:
    repository = root / "repository"
    generated(case, repository)
    sys.path.append(str(repository / "src"))
    # Its package ``tests`` has the name of this one: import it under another.
    name = f"tests_of_{case.name.replace('-', '_')}"
    location = repository / "tests"
    spec = importlib.util.spec_from_file_location(
        name, location / "__init__.py", submodule_search_locations=[str(location)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    found = importlib.import_module(f"{name}.test_conformance").PROVIDER
    assert isinstance(found, ProviderUnderTest)
    return found


def run_with(*examples: str) -> Callable[[C], C]:
    """Run the scenarios of a class with the providers of these examples, one after another."""

    def decorate(tests: C) -> C:
        cases = cast(Any, tests.cases).__func__

        def all_cases(cls: type[Conformance], _: ProviderUnderTest) -> Sequence[Case]:
            return [case for example in examples for case in cases(cls, provider(example))]

        cast(Any, tests).cases = classmethod(all_cases)
        return tests

    return decorate
