"""Findings as the code reports them, read from its syntax: id, severity, message and hint.

What is only known at run time is an ellipsis.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_SEVERITIES = {
    "BlueprintError": "error",
    "DiskError": "error",
    "Finding": "error",
    "Form": "error",
    "LabError": "error",
    "PydanticCustomError": "error",
    "Refused": "error",
    "UnreadableInput": "error",
    "_finding": "error",
    "_problem": "error",
    "_reject": "error",
    "_safe": "error",
    "error": "error",
    "error_at_key": "error",
    "error_inside": "error",
    "warning": "warning",
}
Names = dict[str, list[ast.expr]]


@dataclass(frozen=True, slots=True, order=True)
class Reported:
    """One place where a finding is reported."""

    id: str
    severity: str
    message: str
    hint: str


def reported(folder: Path) -> list[Reported]:
    """Return what the modules of a folder report, without repetition."""
    modules = sorted(folder.rglob("*.py"))
    return sorted({each for module in modules for each in _of_module(module)})


def _of_module(module: Path) -> Iterator[Reported]:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    outside = _bindings(tree.body)
    inside: set[ast.Call] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = outside | _bindings(ast.walk(node))
            inside |= (calls := set(_calls(node)))
            yield from (each for call in calls for each in _of_call(call, names))
        if isinstance(node, ast.ClassDef):
            # An exception's constructor knows its id; what it means is in the docstring.
            for call in _calls(node):
                yield from _of_constructor(call, ast.get_docstring(node) or "")
    for call in _calls(tree):
        if call not in inside:
            yield from _of_call(call, outside)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Call))


def _bindings(nodes: Iterable[ast.AST]) -> Names:
    """Return what each name is bound to, in several branches perhaps."""
    found: Names = {}
    for node in nodes:
        targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node, (ast.Assign, ast.AnnAssign)):
                found.setdefault(target.id, []).extend([node.value] if node.value else [])
    return found


def _id_of(call: ast.Call) -> str:
    keywords = {each.arg: each.value for each in call.keywords}
    first = keywords.get("id", call.args[0] if call.args else None)
    text = first.value if isinstance(first, ast.Constant) else None
    return text if isinstance(text, str) and _ID.fullmatch(text) else ""


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _of_constructor(call: ast.Call, doc: str) -> Iterator[Reported]:
    if _name_of(call) == "__init__" and (id := _id_of(call)):
        yield Reported(id, "error", doc.split("\n\n")[0].rstrip("."), "")


def _of_call(call: ast.Call, names: Names) -> Iterator[Reported]:
    name, id = _name_of(call), _id_of(call)
    if name not in _SEVERITIES or not id:
        return
    keywords = {each.arg: each.value for each in call.keywords}
    arguments = dict(enumerate(call.args))
    severity = _SEVERITIES[name]
    if name == "Finding":
        given = keywords.get("severity", arguments.get(3))
        severity = given.attr.lower() if isinstance(given, ast.Attribute) else severity
    hints = _texts(keywords.get("hint", arguments.get(4 if name == "Finding" else 2)), names)
    for message in _texts(keywords.get("message", arguments.get(1)), names):
        yield from (Reported(id, severity, message, hint) for hint in hints)


def _texts(node: ast.expr | None, names: Names, depth: int = 0) -> list[str]:
    """Return what an expression may be, with an ellipsis for each part that is not constant."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return _joined(parts, names, depth)
        case ast.FormattedValue(value=ast.Name(id=name)) if name.isupper() and name in names:
            return _texts(names[name][0], names, depth + 1)
        case ast.Name(id=name) if name in names and depth < 3:
            return _texts(_bound(names[name], node.lineno), names, depth + 1)
        case ast.IfExp(body=body, orelse=other):
            return _texts(body, names, depth) + _texts(other, names, depth)
        case ast.Call(func=ast.Attribute(value=template, attr="format")):
            return [re.sub(r"\{\w*\}", "…", text) for text in _texts(template, names, depth)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([left, right], names, depth)
        case None:
            return [""]
        case _:
            return ["…"]


def _bound(values: list[ast.expr], line: int) -> ast.expr:
    """Return the value that a name was last given before a line."""
    before = [value for value in values if value.lineno <= line]
    return max(before or values[:1], key=lambda value: value.lineno)


def _joined(parts: list[ast.expr], names: Names, depth: int) -> list[str]:
    choices = [_texts(part, names, depth) if depth < 3 else ["…"] for part in parts]
    return ["".join(each) for each in itertools.islice(itertools.product(*choices), 8)]
