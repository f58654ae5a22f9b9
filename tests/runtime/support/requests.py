"""What the library requests of the API server: as recorded, and as its source has it."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import capsmith_runtime
from capsmith_runtime.kube.client import ResourceType
from tests.golden.cases import Case, generated
from tests.runtime.plugins.record_requests import FILE, Row

PACKAGE = Path(capsmith_runtime.__file__).parent
PLUGINS = Path(__file__).parents[1] / "plugins"
ROOT = Path(__file__).parents[3]
SCENARIOS = Path(__file__).parents[1] / "scenarios"
VERBS = {
    "apply": ("patch", "create"),
    "create": ("create",),
    "delete": ("delete",),
    "get": ("get",),
    "list_page": ("list",),
    "patch": ("patch",),
    "patch_status": ("patch",),
    "update": ("update",),
    "watch": ("watch",),
}
"""Method of the client port -> verbs that the API server authorises."""
REQUESTS_OF_MODULES: dict[Path, set[Row]] = {}
"""What managers requested in the scenarios of a module, of which this process ran all."""
_NO_MANAGER = ("testing", "legacy", "workload", "addon.api", "reconcile.kubernetes_client")
"""Modules of tests, of old import paths, and those whose client is a workload cluster's.

The requests of the last one are the author's, which provider.yaml declares.
"""


@dataclass(frozen=True)
class Request:
    """A request of a manager, and the code that sent it."""

    label: str
    verb: str
    group: str
    resource: str
    name: str
    """Of a cluster-scoped object."""
    is_own_namespace: bool
    module: str
    function: str
    method: str


@dataclass(frozen=True)
class Use:
    """A method of the client port, used in the source."""

    module: str
    function: str
    method: str
    is_call: bool
    resource: ResourceType | None
    """Of a call on a kind that is a constant of the module."""


def recorded(case: Case, selection: str, folder: Path) -> list[Request]:
    """Run the conformance tests of a generated repository, and return what managers requested."""
    repository = folder / "repository"
    generated(case, repository)
    path = ["src", str(PACKAGE.parent), str(PLUGINS)]
    selected = ("-p", "record_requests", "-k", selection, "tests/test_conformance.py")
    return [_request(*row) for row in _recorded(folder, repository, path, *selected)]


def recorded_scenarios(folder: Path) -> list[Request]:
    """Return what managers request in the scenarios of the library.

    Modules that this process has not run before are run for it.
    """
    rows = set[Row]().union(*REQUESTS_OF_MODULES.values())
    modules = sorted(SCENARIOS.rglob("test_*.py"))
    if missing := [str(each) for each in modules if each not in REQUESTS_OF_MODULES]:
        rows.update(_recorded(folder, ROOT, [str(ROOT)], *missing))
    return [_request(*row) for row in sorted(rows)]


def _recorded(folder: Path, cwd: Path, path: list[str], *arguments: str) -> list[Row]:
    file = folder / "requests.json"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments],
        cwd=cwd,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONDONTWRITEBYTECODE": "1",
            FILE: str(file),
        },
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2_000:]
    return [tuple(row) for row in json.loads(file.read_text(encoding="utf-8"))]


def _request(
    label: str, verb: str, group: str, resource: str, name: str, own: str, *code: str
) -> Request:
    module, function, method = code
    function = function.replace("<locals>.", "")
    module = module.removeprefix("capsmith_runtime.")
    return Request(label, verb, group, resource, name, bool(own), module, function, method)


def uses() -> Iterator[Use]:
    """Yield each use of a method of the management cluster's client in the library's source."""
    for file in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        if not module.startswith(_NO_MANAGER):
            yield from _Uses(module).of(ast.parse(file.read_text(encoding="utf-8")))


class _Uses:
    def __init__(self, module: str) -> None:
        self._module = module
        self._imported = importlib.import_module(f"capsmith_runtime.{module}")

    def of(self, node: ast.AST, function: tuple[str, ...] = ()) -> Iterator[Use]:
        """Yield those inside a node of the syntax tree."""
        if isinstance(node, ast.Call) and _is_of_client(node.func):
            yield self._use(node.func, function, node.args[0])
            inside: list[ast.AST] = [*node.args, *node.keywords]
        elif _is_of_client(node):
            yield self._use(node, function, None)
            inside = []
        else:
            inside = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = (*function, node.name)
        for child in inside:
            yield from self.of(child, function)

    def _use(self, method: ast.AST, function: tuple[str, ...], kind: ast.expr | None) -> Use:
        assert isinstance(method, ast.Attribute)
        found = getattr(self._imported, kind.id, None) if isinstance(kind, ast.Name) else None
        resource = found if isinstance(found, ResourceType) else None
        name = ".".join(function)
        return Use(self._module, name, method.attr, kind is not None, resource)


def _is_of_client(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr in VERBS
        and ast.unparse(node.value).rpartition(".")[2] in ("client", "_client")
    )
