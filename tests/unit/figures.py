"""Figures of the code's style: files, heads, comments, names.

``python -m tests.unit.figures [FOLDER]...`` prints them for folders of the repository; without a
folder, for each package of the generator and of the runtime.  ``--names`` lists the functions whose
names do not start with a verb, ``--long`` the functions and files above the limits.

`verbs.txt` has the verbs.  The limits in `figures.yaml` are not zero, because an accessor such as
`labels(obj)` has a noun for its name.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    ROOT / "generator" / "capsmith",
    ROOT / "runtime" / "src" / "capsmith_runtime",
)
LONGEST_FUNCTION = 40
"""Lines of a function with its signature, without decorators and docstring."""
LONGEST_FILE = 500

_VERBS = frozenset(Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split())
_PREDICATES = frozenset({"is", "has", "needs", "may", "can", "must", "was", "are", "does"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Figures:
    """What was counted in some files; the counts are lines unless they say otherwise."""

    files: int = 0
    lines: int = 0
    head: int = 0
    comments: int = 0
    public: int = 0
    non_verbs: list[str] = field(default_factory=list)
    long_functions: list[str] = field(default_factory=list)
    long_files: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add the counts of other files."""
        for each in fields(Figures):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def read(self, path: Path) -> None:
        """Count one file."""
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines = text.count("\n")
        self.files += 1
        self.lines += lines
        self.head += head_lines(tree, lines)
        self.comments += comment_lines(text)
        if lines > LONGEST_FILE:
            self.long_files.append(f"{path.relative_to(ROOT).as_posix()}: {lines}")
        for owner, function in functions(tree):
            name = f"{path.relative_to(ROOT).as_posix()}:{function.lineno}: {function.name}"
            if length(function) > LONGEST_FUNCTION:
                self.long_functions.append(f"{name}: {length(function)}")
            if owner is None and is_public_function(function):
                self.public += 1
                if not starts_with_verb(function.name):
                    self.non_verbs.append(name)


def collect(folders: Iterable[Path]) -> Figures:
    """Return the figures of all Python files below the folders."""
    figures = Figures()
    for folder in folders:
        for path in sorted([folder] if folder.is_file() else folder.rglob("*.py")):
            figures.add(_figures_of(path))
    return figures


@cache
def _figures_of(path: Path) -> Figures:
    figures = Figures()
    figures.read(path)
    return figures


def head_lines(tree: ast.Module, lines: int) -> int:
    """Return the lines before the first statement that is neither docstring nor import."""
    for statement in tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not isinstance(statement, ast.Import | ast.ImportFrom):
            return statement.lineno - 1
    return lines


def comment_lines(text: str) -> int:
    """Return the lines that hold a comment only; instructions to tools do not count."""
    return sum(
        token.type == tokenize.COMMENT
        and token.line.lstrip().startswith("#")
        and not token.string.startswith(("# type:", "# noqa", "#!"))
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
    )


def length(function: Function) -> int:
    """Return the lines of a function with its signature, without decorators and docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or 0) - docstring.lineno + 1
    return lines


def functions(tree: ast.Module) -> Iterator[tuple[ast.ClassDef | None, Function]]:
    """Yield the functions of a module and the methods of its classes, with their class."""
    for statement in tree.body:
        if isinstance(statement, Function):
            yield None, statement
        elif isinstance(statement, ast.ClassDef):
            for member in statement.body:
                if isinstance(member, Function):
                    yield statement, member


def is_public_function(function: Function) -> bool:
    """Return whether the name of a function is a choice that callers read.

    Fixtures of pytest are values, commands of click have the names of the command line, and `main`
    is a convention.
    """
    decorators = " ".join(ast.unparse(each) for each in function.decorator_list)
    is_named_elsewhere = any(word in decorators for word in ("fixture", ".command(", ".group("))
    return not function.name.startswith("_") and function.name != "main" and not is_named_elsewhere


def starts_with_verb(name: str) -> bool:
    """Return whether the first word is a verb, or the name is that of a predicate."""
    first = name.strip("_").split("_")[0]
    return first in _VERBS or first in _PREDICATES


def double_class_names(package: Path) -> dict[str, list[str]]:
    """Return the public class names that several modules of a package define."""
    places = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                place = f"{path.relative_to(ROOT).as_posix()}:{statement.lineno}"
                places[statement.name].append(place)
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def _print_table(folders: list[Path]) -> None:
    print(f"{'folder':50} files  lines  head % comment % public non-verbs long")
    total: Counter[str] = Counter()
    for folder in folders:
        figures = collect([folder])
        if not figures.lines:
            continue
        row = {
            "files": figures.files,
            "lines": figures.lines,
            "head": figures.head,
            "comments": figures.comments,
            "public": figures.public,
            "non_verbs": len(figures.non_verbs),
            "long": len(figures.long_functions),
        }
        total.update(row)
        _print_row(folder.relative_to(ROOT).as_posix(), row)
    if len(folders) > 1 and total:
        _print_row("all", dict(total))


def _print_row(name: str, row: dict[str, int]) -> None:
    share = 100 / row["lines"]
    print(
        f"{name:50} {row['files']:5} {row['lines']:6} {row['head'] * share:7.1f}"
        f" {row['comments'] * share:9.1f} {row['public']:6} {row['non_verbs']:9} {row['long']:4}"
    )


def main() -> None:
    """Print the figures of the folders that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    parser.add_argument("--names", action="store_true", help="list functions without a verb")
    parser.add_argument("--long", action="store_true", help="list long functions and files")
    arguments = parser.parse_args()
    packages = [part for package in PACKAGES for part in sorted(package.iterdir())]
    named = [ROOT / name for name in arguments.folders]
    folders = named or [path for path in packages if path.is_dir() or path.suffix == ".py"]
    _print_table(folders)
    figures = collect(folders)
    if arguments.names:
        print(*figures.non_verbs, sep="\n")
    if arguments.long:
        print(*figures.long_functions, *figures.long_files, sep="\n")
    if not named:
        for package in PACKAGES:
            for name, places in double_class_names(package).items():
                print(f"class {name}: {', '.join(places)}")


if __name__ == "__main__":
    main()
