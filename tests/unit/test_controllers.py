"""Controllers are composed: a reader of one file sees all that a reconcile does.

Counted are the references to ``self`` in a controller's chain of classes that resolve in another
file than their own, upwards to a base class or downwards to an override.  Decision 0016 has the
reasons; `python -m tests.unit.test_controllers` prints the figures.
"""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[2] / "runtime" / "src" / "capsmith_runtime"


def find_controllers() -> dict[str, type]:
    """Return the classes that end in Controller, by module and name; not that of ``kube``."""
    found = {}
    for path in sorted(RUNTIME.rglob("*.py")):
        if path.relative_to(RUNTIME).parts[0] in ("kube", "testing"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("Controller"):
                name = ".".join(path.relative_to(RUNTIME).with_suffix("").parts)
                module = import_module(f"capsmith_runtime.{name}")
                found[f"{name}.{node.name}"] = getattr(module, node.name)
    return found


CONTROLLERS = find_controllers()


def self_references(cls: type) -> list[ast.Attribute]:
    """Return each ``self.name`` and ``super().name`` in the body of a class."""
    attributes = (node for node in ast.walk(_body(cls)) if isinstance(node, ast.Attribute))
    return [node for node in attributes if _is_self(node.value) or _is_super(node.value)]


def count_leaving(cls: type) -> tuple[int, int]:
    """Return how many references leave their file, and of how many, over the class chain.

    A reference belongs to the first class of the chain that defines the name or sets it.
    """
    chain = [base for base in cls.__mro__ if base.__module__.startswith("capsmith_runtime")]
    names = {base: _names(base) for base in chain}
    total = leaving = 0
    for base in chain:
        for node in self_references(base):
            above = chain[chain.index(base) + 1 :] if _is_super(node.value) else chain
            owner = next((each for each in above if node.attr in names[each]), base)
            total += 1
            leaving += inspect.getfile(owner) != inspect.getfile(base)
    return leaving, total


def _names(cls: type) -> set[str]:
    stored = {node.attr for node in self_references(cls) if isinstance(node.ctx, ast.Store)}
    return set(vars(cls)) | stored


def _body(cls: type) -> ast.AST:
    return ast.parse(inspect.getsource(cls))


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_super(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


@pytest.mark.parametrize("name", CONTROLLERS)
def test_no_reference_leaves_the_file(name: str) -> None:
    leaving, _ = count_leaving(CONTROLLERS[name])
    assert leaving == 0, f"{name}: compose it of objects that it owns, see decision 0016"


if __name__ == "__main__":
    for name, cls in CONTROLLERS.items():
        leaving, total = count_leaving(cls)
        print(f"{leaving:3} of {total:3}  {name}")
