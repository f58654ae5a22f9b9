"""A generated repository passes its own tools before its author has written a line."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import yaml

from tests.exhaustive import exhaustive
from tests.functional.conftest import REPOSITORIES, Repository
from tests.golden.cases import authored_cases

_REPEATED = {
    *("acme", "complete", "control-plane", "homelab"),
    *(case.name for case in authored_cases()),
}
"""Examples whose scenarios `two-contracts` and `homelab-v1beta1` run too.

`./dev release --dry-run` runs the tests of acme.
"""
_TESTED = [exhaustive(case)[0] if case.name in _REPEATED else case for case in REPOSITORIES]

IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules["capsmith"] = None  # nothing that is generated may need the generator
packages = [importlib.import_module(name) for name in sys.argv[1:]]
names = [
    module.name
    for package in packages
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
]
for name in names:
    if not name.endswith(".__main__"):
        importlib.import_module(name)
print(len(names))
"""


def _placeholders(text: str) -> str:
    # clusterctl's variables stand where YAML wants a number or a string.
    return re.sub(r"\$\{[^}]*\}", "1", text)


def test_every_module_imports(repository: Repository) -> None:
    packages = (repository.package, "capsmith_runtime")
    count = repository.python("-W", "error", "-c", IMPORT_ALL, *packages)

    assert int(count) > 20


def test_types(repository: Repository) -> None:
    assert "Success" in repository.python("-m", "mypy")


def test_lint_and_format(repository: Repository) -> None:
    repository.python("-m", "ruff", "check", ".")
    repository.python("-m", "black", "--check", "--quiet", ".")


@pytest.mark.parametrize("repository", _TESTED, ids=lambda case: case.name, indirect=True)
def test_its_own_tests(repository: Repository) -> None:
    output = repository.python("-m", "pytest", "-q", "-p", "no:cacheprovider")

    passed = re.search(r"(\d+) passed", output)
    assert passed is not None
    assert int(passed[1]) > 20


@pytest.mark.parametrize("repository", authored_cases(), ids=lambda case: case.name, indirect=True)
def test_unit_tests_of_an_author(repository: Repository) -> None:
    unit = [path.name for path in repository.folder.glob("tests/test_*.py")]
    unit.remove("test_conformance.py")
    output = repository.python(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider"), *(f"tests/{name}" for name in unit)
    )

    passed = re.search(r"(\d+) passed", output)
    assert passed is not None
    assert int(passed[1]) > 20


def test_data_files_parse(repository: Repository) -> None:
    for path in repository.files("*.y*ml"):
        text = _placeholders(path.read_text(encoding="utf-8"))
        assert list(yaml.load_all(text, Loader=yaml.CSafeLoader)), path
    for path in repository.files("*.json"):
        json.loads(path.read_text(encoding="utf-8"))
    for path in repository.files("*.toml"):
        tomllib.loads(path.read_text(encoding="utf-8"))


def test_kustomize_builds_what_clusterctl_installs(repository: Repository) -> None:
    folders = [*repository.folder.glob("config"), *repository.folder.glob("*/config")]
    assert folders
    for folder in folders:
        for part in ("default", "overlay"):
            built = repository.run("kubectl", "kustomize", str(folder / part))
            documents = yaml.load_all(built, Loader=yaml.CSafeLoader)
            kinds = [document["kind"] for document in documents]

            assert kinds.count("Namespace") == 1, "clusterctl takes exactly one"
            assert kinds.count("Deployment") == 1
            assert ("CustomResourceDefinition" in kinds) == (folder / "crd").is_dir()
