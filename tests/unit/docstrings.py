"""Docstrings of public code, for a reader who judges their English.

``python -m tests.unit.docstrings --sample 120 --seed 20261130`` draws the same docstrings each
time; without ``--sample`` it prints all of them.  Paths below the root of the repository limit it
to files and folders.  A reader rates each as plain, un-idiomatic or cryptic by docs/style.md, and
sees only what is printed here: the place, the signature and the docstring.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.unit.figures import PACKAGES, ROOT


@dataclass(frozen=True, order=True)
class Docstring:
    """One docstring with what it documents."""

    path: str
    line: int
    subject: str
    text: str

    def __str__(self) -> str:
        """Return the place, the subject and the docstring on lines of their own."""
        text = "\n".join(f"    {line}".rstrip() for line in self.text.splitlines())
        return f"{self.path}:{self.line} {self.subject}\n{text}"


def collect(paths: Iterable[Path]) -> list[Docstring]:
    """Return the public docstrings of files and folders, ordered by path and line."""
    return sorted(
        found
        for path in paths
        for file in ([path] if path.is_file() else path.rglob("*.py"))
        for found in read_docstrings(
            file.read_text(encoding="utf-8"), file.relative_to(ROOT).as_posix()
        )
    )


def read_docstrings(text: str, path: str) -> Iterator[Docstring]:
    """Yield the docstrings of a module, its public classes and functions, and their attributes."""
    tree = ast.parse(text)
    if (docstring := ast.get_docstring(tree)) is not None:
        yield Docstring(path, 1, "module", docstring)
    yield from _read_body(tree, path, "")


def _read_body(owner: ast.Module | ast.ClassDef, path: str, prefix: str) -> Iterator[Docstring]:
    previous: ast.stmt | None = None
    for statement in owner.body:
        name = getattr(statement, "name", "")
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            is_public = not name.startswith("_")
            if is_public and (docstring := ast.get_docstring(statement)) is not None:
                subject = _describe(statement, prefix)
                yield Docstring(path, statement.lineno, subject, docstring)
            if is_public and isinstance(statement, ast.ClassDef):
                yield from _read_body(statement, path, f"{prefix}{name}.")
        elif previous is not None and (text := _attribute_docstring(previous, statement)):
            target = ast.unparse(previous).splitlines()[0]
            yield Docstring(path, statement.lineno, f"{prefix}{target}", inspect.cleandoc(text))
        previous = statement


def _describe(statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, prefix: str) -> str:
    if isinstance(statement, ast.ClassDef):
        return f"class {prefix}{statement.name}"
    returns = f" -> {ast.unparse(statement.returns)}" if statement.returns else ""
    return f"{prefix}{statement.name}({ast.unparse(statement.args)}){returns}"


def _attribute_docstring(assignment: ast.stmt, statement: ast.stmt) -> str:
    """Return the string literal that follows the assignment of a public name, else ""."""
    if not isinstance(assignment, ast.Assign | ast.AnnAssign):
        return ""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return ""
    target = assignment.target if isinstance(assignment, ast.AnnAssign) else assignment.targets[0]
    text = statement.value.value
    is_public = isinstance(target, ast.Name) and not target.id.startswith("_")
    return text if is_public and isinstance(text, str) else ""


def main() -> None:
    """Print the docstrings of the paths that the arguments name, or a sample of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--sample", type=int, metavar="NUMBER", help="draw so many docstrings")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (default 0)")
    arguments = parser.parse_args()
    docstrings = collect([ROOT / path for path in arguments.paths] or PACKAGES)
    total = len(docstrings)
    if arguments.sample is not None:
        docstrings = random.Random(arguments.seed).sample(docstrings, arguments.sample)
        print(f"{len(docstrings)} of {total} docstrings, seed {arguments.seed}\n")
    for number, docstring in enumerate(docstrings, start=1):
        print(f"{number}. {docstring}\n")


if __name__ == "__main__":
    main()
