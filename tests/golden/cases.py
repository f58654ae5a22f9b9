"""Cases, and what a run of capsmith makes of them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from capsmith.commands.generate import generate
from capsmith.merging.lock import LOCK_PATH
from capsmith.output.reference import AUTHOR_API_PATH
from tests.golden.expected import expected_folder, is_copy, kept_folder
from tests.golden.files import File, read
from tests.repositories import add_authored_code, has_authored_code
from tests.run_folder import RUN_FOLDER, build_once

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
_RUNTIME_DIGEST = re.compile(r"(^runtime:\n(?:  .*\n)*?  digest: )\S+", re.MULTILINE)
_PAGE_DIGEST = re.compile(rf"(^  {AUTHOR_API_PATH}:\n    .*\n    digest: )\S+", re.MULTILINE)
_ENTRY = re.compile(r"^  (\S.*):\n    owner: (\w+)\n    digest: (\S+)\n(?!    )", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    name: str
    spec: Path

    @property
    def kept(self) -> Path:
        """Return the folder with the files of the expected tree that no other case has."""
        return kept_folder(self.name)

    @property
    def expected(self) -> Path:
        """Return a folder with the whole expected tree; do not write there."""
        return expected_folder(self.name)


def cases() -> tuple[Case, ...]:
    """Return every example without authored code, and every folder here that has its own spec."""
    examples = [path for path in _examples() if not has_authored_code(path.parent)]
    return _cases([*examples, *HERE.glob("*/provider.yaml")])


def authored_cases() -> tuple[Case, ...]:
    """Return every example with authored code, which its own tests prove.

    The example libvirt needs its C library, which PyPI does not have: it is included only with
    CAPSMITH_VM=1.
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
    """Generate the repository of a case in ``folder``, with authored code if there is any.

    The repository is a copy of one that is generated once for each test run.
    """
    shutil.copytree(_generated_once(case.spec), folder, dirs_exist_ok=True)
    return read(folder)


def _generated_once(spec: Path) -> Path:
    """Return what the first process to ask for it has generated; do not write there."""
    shared = Path(os.environ[RUN_FOLDER])
    key = hashlib.sha256(f"{spec.parent.name} {spec.read_text(encoding='utf-8')}".encode())
    folder = shared / key.hexdigest()[:16]
    return build_once(folder, partial(_generate, spec))


def _generate(spec: Path, folder: Path) -> None:
    report = generate(spec, folder)
    assert report.exit_code == 0, report.findings
    add_authored_code(spec.parent, folder)


def compared(files: Mapping[str, File]) -> dict[str, File]:
    """Return what is compared with the expected tree: all but copies of texts of this repository.

    The digests of the vendored runtime and of the page on its API would change the lock with every
    change of the library.  Each file of the lock is one line: the form that the lock has on disk is
    proven by tests/unit/merging.
    """
    found = {path: file for path, file in files.items() if not is_copy(path)}
    text = _RUNTIME_DIGEST.sub(r"\1(of the record)", found[LOCK_PATH].text)
    text = _PAGE_DIGEST.sub(r"\1(of the page)", text)
    text = _ENTRY.sub(r"  \1: {owner: \2, digest: \3}\n", text)
    found[LOCK_PATH] = File(text, found[LOCK_PATH].executable)
    return found
