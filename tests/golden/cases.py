"""Cases, and what a run of capsmith makes of them."""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from capsmith.commands.build import SCHEMA_PATH
from capsmith.commands.generate import generate
from capsmith.merging.lock import LOCK_PATH, SPEC_NAME
from capsmith.output.reference import AUTHOR_API_PATH
from tests.repositories import add_authored_code, has_authored_code

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
BASE = ".capsmith/base/"
VENDOR = "vendor/"
_RUNTIME_DIGEST = re.compile(r"(^runtime:\n(?:  .*\n)*?  digest: )\S+", re.MULTILINE)
_PAGE_DIGEST = re.compile(rf"(^  {AUTHOR_API_PATH}:\n    .*\n    digest: )\S+", re.MULTILINE)
OVERLAY = "blueprints/"
"""The folder of the author's blueprints, in those cases that have some."""


@dataclass(frozen=True)
class Case:
    name: str
    spec: Path

    @property
    def expected(self) -> Path:
        return HERE / self.name / "expected"


@dataclass(frozen=True)
class File:
    text: str
    executable: bool


def cases() -> tuple[Case, ...]:
    """Every example without authored code, and every folder here that brings its own spec."""
    examples = [path for path in _examples() if not has_authored_code(path.parent)]
    return _cases([*examples, *HERE.glob("*/provider.yaml")])


def authored_cases() -> tuple[Case, ...]:
    """Every example with authored code: what proves it are its own tests, and no expected tree.

    That of libvirt needs its C library, which is no package of PyPI: it is one with CAPSMITH_VM=1.
    """
    left_out = set() if os.environ.get("CAPSMITH_VM") else {"libvirt"}
    specs = (path for path in _examples() if path.parent.name not in left_out)
    return _cases([path for path in specs if has_authored_code(path.parent)])


def _examples() -> Iterator[Path]:
    return EXAMPLES.glob("*/provider.yaml")


def _cases(specs: Iterable[Path]) -> tuple[Case, ...]:
    named = {path.parent.name: path for path in specs}
    return tuple(Case(name, spec) for name, spec in sorted(named.items()))


def generated(case: Case, folder: Path) -> dict[str, File]:
    """The repository of a case, made in ``folder``, with the authored code if there is any."""
    report = generate(case.spec, folder)
    assert report.exit_code == 0, report.findings
    add_authored_code(case.spec.parent, folder)
    return read(folder)


def kept(files: Mapping[str, File]) -> dict[str, File]:
    """Return what is compared with the expected tree: all but copies of texts of this repository.

    The digests of the vendored runtime and of the page on its API would change the lock with every
    change of the library.
    """
    copies = {str(SPEC_NAME), str(SCHEMA_PATH), str(AUTHOR_API_PATH)}
    folders = (BASE, OVERLAY, VENDOR)
    kept = {p: f for p, f in files.items() if p not in copies and not p.startswith(folders)}
    lock = kept[LOCK_PATH]
    text = _RUNTIME_DIGEST.sub(r"\1(of the record)", lock.text)
    kept[str(LOCK_PATH)] = replace(lock, text=_PAGE_DIGEST.sub(r"\1(of the page)", text))
    return kept


def read(folder: Path) -> dict[str, File]:
    """All files below ``folder``; links are not followed, and do not belong there."""
    return {path.relative_to(folder).as_posix(): _file(path) for path in _files(folder)}


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), path
        if stat.S_ISREG(mode):
            yield path


def _file(path: Path) -> File:
    return File(path.read_bytes().decode(), bool(path.stat().st_mode & stat.S_IXUSR))


def difference(old: Mapping[str, File], new: Mapping[str, File]) -> str:
    """A unified diff of two trees, empty when they are the same."""
    lines: list[str] = []
    for path in sorted({*old, *new}):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        if before and after and before.executable != after.executable:
            lines.append(f"{path}: executable {before.executable} -> {after.executable}\n")
        lines += difflib.unified_diff(
            before.text.splitlines(keepends=True) if before else [],
            after.text.splitlines(keepends=True) if after else [],
            f"expected/{path}" if before else "(no such file)",
            f"generated/{path}" if after else "(no such file)",
        )
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)
