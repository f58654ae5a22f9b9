"""Random edits and random changes of the description: nothing is lost, all is reported."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from capsmith.commands import build as build_command
from capsmith.commands import generate, load, update
from capsmith.commands.load import Loaded
from capsmith.commands.plan import UpdateOptions
from capsmith.findings import Severity
from capsmith.merging.lock import LOCK_PATH, Lock
from capsmith.merging.shared_file import ConflictStyle
from capsmith.provider.model import Provider
from capsmith.report import Outcome, Report
from capsmith.tree import FileTree, Owner, is_text_of
from tests.properties.authors import DESCRIPTIONS, EDITS, OWN, TRESPASSES, Edit, description
from tests.regenerate.conftest import tree

FEW = ("config/crd", "/_generated/api/", "metadata.yaml", "docs/")
MEMORY = Path("/dev/shm")
Tree = dict[str, tuple[bytes, int]]

_understand, _build = cache(load.load_text), build_command.build


@cache
def _built(text: str) -> FileTree:
    """All shared files and scaffolds, and of the many generated files a few."""
    provider = _loaded(text).provider
    assert provider is not None, _loaded(text).findings
    whole = _build(provider)
    return FileTree.of(
        [
            file
            for file in whole
            if file.owner is not Owner.GENERATED or any(part in file.path for part in FEW)
        ]
    )


def _loaded(text: str) -> Loaded:
    return _understand(text, "provider.yaml")


@pytest.fixture(scope="module", autouse=True)
def _rendered_once() -> Iterator[None]:
    texts = {id(_loaded(text).provider): text for text in map(description, range(DESCRIPTIONS))}

    def build(provider: Provider, legacy_imports: bool) -> FileTree:
        assert not legacy_imports
        return _built(texts[id(provider)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "load_text", lambda text, file: _loaded(text))
        patch.setattr(build_command, "build", build)
        patch.setattr(build_command, "check_manifests", lambda tree, provider: ())
        yield


@pytest.fixture(scope="module")
def first_runs() -> Iterator[dict[int, Path]]:
    """Return the folders of first runs; each is generated when it is first requested."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as work:
        yield {-1: Path(work)}


def generated(first_runs: dict[int, Path], number: int) -> Path:
    if number not in first_runs:
        folder = first_runs[-1] / str(number)
        folder.mkdir()
        (folder / "provider.yaml").write_text(description(number))
        assert generate.generate(folder / "provider.yaml", folder).exit_code == 0
        first_runs[number] = folder
    return first_runs[number]


@dataclass(frozen=True)
class Round:
    """An author works for a while, changes the description, and updates."""

    edits: tuple[Edit, ...]
    number: int
    style: ConflictStyle
    resolution: str


ROUNDS = st.lists(
    st.builds(
        Round,
        st.tuples(EDITS, TRESPASSES).map(lambda both: both[0] + both[1]),
        st.integers(0, DESCRIPTIONS - 1),
        st.sampled_from(ConflictStyle),
        st.sampled_from(["ours", "theirs", "all", "deleted", "abort"]),
    ),
    min_size=1,
    max_size=3,
)


_SETTINGS = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@_SETTINGS
@given(st.integers(0, DESCRIPTIONS - 1), ROUNDS)
def test_nothing_of_the_author_is_lost_and_every_conflict_is_reported(
    first_runs: dict[int, Path], number: int, rounds: list[Round]
) -> None:
    _check_rounds(first_runs, number, rounds)


@pytest.mark.exhaustive
@settings(_SETTINGS, max_examples=300)
@given(st.integers(0, DESCRIPTIONS - 1), ROUNDS)
def test_the_same_with_more_examples(
    first_runs: dict[int, Path], number: int, rounds: list[Round]
) -> None:
    _check_rounds(first_runs, number, rounds)


def _check_rounds(first_runs: dict[int, Path], number: int, rounds: list[Round]) -> None:
    source = generated(first_runs, number)
    with tempfile.TemporaryDirectory(dir=first_runs[-1]) as work:
        folder = Path(shutil.copytree(source, Path(work) / "acme"))
        for each in rounds:
            Trial(folder, each).run()


class Trial:
    """One round in a folder."""

    def __init__(self, folder: Path, round: Round) -> None:
        self._folder, self._round = folder, round
        self._lock = self._read_lock()
        for edit in round.edits:
            edit.apply(folder, self._files(edit.owner))
        (folder / "provider.yaml").write_text(description(round.number))
        self._incoming = _built(description(round.number))
        self._before = tree(folder)

    def run(self) -> None:
        report = self._update()
        outcomes = {file.path: file.outcome for file in report.outcomes}
        if Outcome.REFUSED in outcomes.values():
            event("refused")
            self._check_refusal(report)
            self._give_in()
            report = self._update()
            outcomes = {file.path: file.outcome for file in report.outcomes}
            assert Outcome.REFUSED not in outcomes.values()
        conflicts = {path for path, outcome in outcomes.items() if outcome is Outcome.CONFLICTED}
        event(f"conflicts: {bool(conflicts)}")
        self._check_author(outcomes)
        self._check_shared(conflicts)
        self._check_told(report, conflicts)
        if conflicts and not self._conclude(conflicts):
            return
        self._check_nothing_left_to_do()

    def _update(self) -> Report:
        # Git is not asked, as the folder is in no work tree.
        return update.update(self._folder, UpdateOptions(style=self._round.style, allow_dirty=True))

    def _read_lock(self) -> Lock:
        return Lock.load((self._folder / LOCK_PATH).read_text(), "lock")

    def _files(self, owner: str) -> list[str]:
        if owner in ("own", "project"):
            return list(OWN) if owner == "own" else ["pyproject.toml"]
        return [path for path, file in self._lock.files.items() if file.owner == owner]

    def _check_refusal(self, report: Report) -> None:
        """Nothing is done, and each file is named that was edited or is in the way."""
        assert tree(self._folder) == self._before
        refused = {file.path for file in report.outcomes}
        assert {f.location.file for f in report.findings if f.severity is Severity.ERROR} == refused
        for path in refused:
            known = self._lock.files.get(path)
            content = self._before[path][0]
            assert known is None or not is_text_of(content, known.digest)

    def _give_in(self) -> None:
        """Move away what is refused."""
        report = update.preview(self._folder, UpdateOptions())
        for file in report.outcomes:
            (self._folder / file.path).unlink()
            del self._before[file.path]

    def _check_author(self, outcomes: dict[str, Outcome]) -> None:
        after = tree(self._folder)
        gone = self._before.keys() - after.keys()
        for path in gone:
            known = self._lock.files.get(path)
            assert known is not None, path
            assert path not in self._incoming, path
            assert known.owner is not Owner.SCAFFOLD, path
            assert is_text_of(self._before[path][0], known.digest), path
            assert outcomes[path] is Outcome.REMOVED
        for path, (content, _) in self._before.items():
            known = self._lock.files.get(path)
            if path.startswith(".capsmith/") or path in gone:
                continue
            edited = known is not None and not is_text_of(content, known.digest)
            incoming = self._incoming.files.get(path)
            if known is None or (edited and (known.owner is Owner.SCAFFOLD or incoming is None)):
                assert after[path][0] == content, path
            elif known.owner is Owner.SCAFFOLD and incoming is not None:
                digests = (known.digest, incoming.digest)
                assert any(is_text_of(after[path][0], each) for each in digests), path
        for path in after.keys() - self._before.keys():
            deleted = path in self._lock.files
            assert not deleted or self._incoming[path].owner is Owner.GENERATED, path

    def _check_shared(self, conflicts: set[str]) -> None:
        """Every line that the author added is there, and the markers are in what is in conflict."""
        for file in self._incoming:
            known, there = self._lock.files.get(file.path), self._before.get(file.path)
            if file.owner is not Owner.MERGED or there is None or known is None:
                continue
            after = (self._folder / file.path).read_bytes()
            base = _built_text(self._lock, file.path)
            added = Counter(_lines(there[0])) - Counter(_lines(base))
            assert not added - Counter(_lines(after)), file.path
            assert (b"<<<<<<< yours" in _lines(after)) is (file.path in conflicts), file.path

    def _check_told(self, report: Report, conflicts: set[str]) -> None:
        told = [f.location for f in report.findings if f.id == "update-conflict"]
        assert {location.file for location in told} == conflicts
        assert report.exit_code == (1 if conflicts else 0)
        for path in conflicts:
            lines = _lines((self._folder / path).read_bytes())
            marked = [n for n, line in enumerate(lines, 1) if line == b"<<<<<<< yours"]
            assert marked == [location.line for location in told if location.file == path]

    def _conclude(self, conflicts: set[str]) -> bool:
        """Resolve the conflicts, or go back; whether the update stands."""
        assert update.resume(self._folder).exit_code == 1
        if self._round.resolution == "abort":
            assert update.abort(self._folder).exit_code == 0
            assert tree(self._folder) == self._before
            return False
        for path in conflicts:
            _resolve(self._folder / path, self._round.resolution)
        resolved = {path: state for path, state in tree(self._folder).items() if path[0] != "."}
        assert update.resume(self._folder).exit_code == 0
        now = tree(self._folder)
        assert {path: state for path, state in now.items() if path[0] != "."} == resolved
        return True

    def _check_nothing_left_to_do(self) -> None:
        before = tree(self._folder)
        assert update.check(self._folder, UpdateOptions()).exit_code == 0
        report = self._update()
        assert report.exit_code == 0
        assert {file.outcome for file in report.outcomes} <= {Outcome.KEPT, Outcome.UNCHANGED}
        assert tree(self._folder) == before
        assert not (self._folder / ".capsmith/unfinished").exists()


_TEXTS: dict[tuple[str, str], bytes] = {}


def _built_text(lock: Lock, path: str) -> bytes:
    """The text of a shared file whose digest ``lock`` has."""
    wanted = lock.files[path].digest
    for number in range(DESCRIPTIONS):
        tree = _built(description(number))
        if path in tree:
            _TEXTS[path, tree[path].digest] = tree[path].text.encode()
        if (path, wanted) in _TEXTS:
            return _TEXTS[path, wanted]
    raise AssertionError(f"no description gives this {path}")


def _lines(content: bytes) -> list[bytes]:
    return content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")


def _resolve(path: Path, way: str) -> None:
    if way == "deleted":
        path.unlink()
        return
    lines, side = [], "all"
    for line in path.read_bytes().split(b"\n"):
        bare = line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r")
        if bare == b"<<<<<<< yours":
            side = "ours"
        elif bare.startswith(b"||||||| generated"):
            side = "base"
        elif bare == b"=======" and side in ("ours", "base"):
            side = "theirs"
        elif bare.startswith(b">>>>>>> capsmith"):
            side = "all"
        elif side == "all" or way in (side, "all"):
            lines.append(line)
    path.write_bytes(b"\n".join(lines))
