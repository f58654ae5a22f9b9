"""The page docs/author-api.md names exactly what the runtime exports to authors."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capsmith_runtime import errors
from capsmith_runtime.reconcile.scopes import Scope

PAGE = Path(__file__).parents[2] / "docs" / "author-api.md"
SLICES = (
    "infrastructure",
    "remediation",
    "resource",
    "bootstrap",
    "controlplane",
    "ipam",
    "addon",
    "extension",
    "admission",
)
_KUBERNETES_ERRORS = {
    "AlreadyExistsError",
    "CallEndedError",
    "ConflictError",
    "ForbiddenError",
    "InvalidRequestError",
    "KubernetesError",
    "NotDeclaredError",
    "NotFoundError",
}
"""What the client of a scope raises, and authors may want to handle."""
HEAVY = ("lightkube", "prometheus_client", "cryptography")
_NAME = re.compile(r"`(\w+)[^`]*`")


def _sections() -> dict[str, str]:
    """Return the text of each section by the module in its heading."""
    parts = re.split(r"^#{2,3} (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    headings = [found.group(1) if (found := re.search(r"`(.*)`", x)) else x for x in parts[1::2]]
    return dict(zip(headings, parts[2::2], strict=True))


def _rows(section: str) -> list[list[str]]:
    lines = [line for line in section.splitlines() if line.startswith("| ") or line == "|"]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def _names(section: str) -> list[str]:
    """Return the names in the first columns and in the list of shared names."""
    shared = [line for line in section.splitlines() if line.startswith("Shared names:")]
    cells = [row[0] for row in _rows(section)] + shared
    return [name for cell in cells for name in _NAME.findall(cell)]


def _described_attributes() -> dict[str, set[str]]:
    """Return the attributes in the second columns by qualified name of their class."""
    attributes: dict[str, set[str]] = {}
    for module, section in _sections().items():
        current = ""
        for row in _rows(section):
            names = _NAME.findall(row[0])
            current = f"{module}.{names[0]}" if names else current
            if names or not row[0]:
                attributes.setdefault(current, set()).update(_NAME.findall(row[1]))
    return attributes


def _attributes(cls: type[Any]) -> set[str]:
    own = [base for base in cls.__mro__ if base.__module__.startswith("capsmith_runtime")]
    names = {name for base in own for name in [*inspect.get_annotations(base), *vars(base)]}
    return {name for name in names if not name.startswith("_")}


def _exports(module: str) -> list[str]:
    return list(importlib.import_module(module).__all__)


@pytest.mark.parametrize("package", ["capsmith_runtime", "capsmith_runtime.testing"])
@pytest.mark.parametrize("name", SLICES)
def test_page_lists_exactly_the_exported_names(package: str, name: str) -> None:
    module = f"{package}.{name}"
    listed = _names(_sections()[module])

    assert sorted(listed) == sorted(_exports(module))


def test_shared_names_are_described_once() -> None:
    sections = _sections()
    shared = _names(sections["Shared names"])
    used = {
        name
        for section in sections.values()
        for line in section.splitlines()
        if line.startswith("Shared names:")
        for name in _NAME.findall(line)
    }

    assert set(shared) == used
    assert len(shared) == len(used)


@pytest.mark.parametrize("name", SLICES)
def test_scopes_come_with_the_errors_that_they_raise(name: str) -> None:
    module = importlib.import_module(f"capsmith_runtime.{name}")
    exports = {export: getattr(module, export) for export in module.__all__}
    attributes = {
        attribute
        for cls in exports.values()
        if inspect.isclass(cls) and issubclass(cls, Scope)
        for attribute in _attributes(cls)
    }
    texts = " ".join(inspect.getdoc(cls) or "" for cls in exports.values() if inspect.isclass(cls))
    needed = {"DecodingError"} if "status" in attributes else set()
    needed |= {"KubernetesClient", *_KUBERNETES_ERRORS} if "client" in attributes else set()
    if attributes:
        needed |= {"NotAvailableError", "RateLimitedError", "ReconcileError", "TerminalError"}
    # What a docstring lets the author catch.
    needed |= {"ApiError"} if "ApiError" in texts or "workload_async" in attributes else set()

    assert needed <= set(exports)


@pytest.mark.parametrize("name", SLICES)
def test_page_lists_exactly_the_attributes_of_classes(name: str) -> None:
    module = importlib.import_module(f"capsmith_runtime.{name}")
    described = _described_attributes()
    exports = {name: getattr(module, name) for name in module.__all__}
    classes = {
        name: cls
        for name, cls in exports.items()
        if inspect.isclass(cls) and not issubclass(cls, BaseException)
    }

    for class_name, cls in classes.items():
        qualified = f"{module.__name__}.{class_name}"
        listed = described.get(qualified, described.get(f"Shared names.{class_name}"))
        assert listed == _attributes(cls), class_name


def test_page_shows_the_constructors_of_errors_that_authors_raise() -> None:
    rows = [row for row in _rows(_sections()["Errors of your SDK"]) if "Error(" in row[0]]
    shown = {row[0].strip("`").partition("(")[0]: row for row in rows}

    assert shown.keys() == {
        name
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and (cls is errors.ReconcileError or _is_for_authors(cls))
    }
    for name, (constructor, meaning) in shown.items():
        signature = inspect.signature(getattr(errors, name))
        plain = [
            parameter.replace(annotation=inspect.Parameter.empty)
            for parameter in signature.parameters.values()
        ]
        bare = signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)
        assert constructor.strip("`") == f"{name}{bare}".replace("'", '"')
        assert ("`retry_after`" in meaning) == ("retry_after" in signature.parameters)
        assert ("seconds" in meaning) == ("retry_after" in signature.parameters)


def _is_for_authors(cls: type[Any]) -> bool:
    return "Raise this" in (inspect.getdoc(cls) or "")


@pytest.mark.parametrize("name", SLICES)
def test_importing_the_api_loads_no_heavy_library(name: str) -> None:
    program = (
        f"import sys, capsmith_runtime.{name}\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "[]\n"
