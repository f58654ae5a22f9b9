"""The state of an update whose conflicts the author has not yet resolved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from capsmith.errors import UnreadableInput
from capsmith.merging.shared_file import ConflictLabels
from capsmith.safetext import RelativePath

UNFINISHED_FOLDER = RelativePath(".capsmith/unfinished")
STATE_PATH = RelativePath(f"{UNFINISHED_FOLDER}/state.json")
_MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading a record of another form raises."""


@dataclass(frozen=True, slots=True)
class Touched:
    """A file that the update changed: its digests, empty for a file that did not exist."""

    before: str
    after: str
    mode: int
    """The file's permission bits before the update."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An update of a repository whose conflicts the author has not resolved yet."""

    names: ConflictLabels
    conflicts: tuple[str, ...]
    touched: Mapping[str, Touched]
    records: Mapping[str, str]
    """Digests of the lock and of each base, by path, to record once the conflicts are resolved;
    empty for a base to remove.
    """

    @property
    def kept(self) -> frozenset[str]:
        """Return the digests of all contents that are stored until the update is finished."""
        digests = {*self.records.values(), *(file.before for file in self.touched.values())}
        return frozenset(digests - {""})

    def dump(self) -> str:
        """Return the state as JSON, for the file that :meth:`load` parses."""
        # json would write a named tuple as a list.
        document = asdict(self) | {"names": self.names._asdict()}
        return json.dumps(document, indent=1, sort_keys=True) + "\n"

    @classmethod
    def load(cls, text: str, file: str) -> Unfinished:
        """Parse a state file. ``file`` is the name to use in errors.

        Raises UnreadableInput if the file was not written by capsmith.
        """
        try:
            document = json.loads(text)
            touched = {
                _path(path): Touched(str(t["before"]), str(t["after"]), int(t["mode"]) & 0o777)
                for path, t in document["touched"].items()
            }
            names = ConflictLabels(
                *(str(document["names"][key]) for key in ("ours", "base", "theirs"))
            )
            conflicts = tuple(_path(path) for path in document["conflicts"])
            records = {_path(path): str(kept) for path, kept in document["records"].items()}
            found = cls(names, conflicts, touched, records)
            _ = [locate_kept_text(kept) for kept in found.kept]  # each of them is one
            return found
        except _MALFORMED as error:
            raise UnreadableInput(
                "unfinished-unreadable",
                "this is not a record of an update with conflicts that capsmith wrote",
                file=file,
                hint=f"Remove {UNFINISHED_FOLDER}, and restore the folder from version control.",
            ) from error


def locate_kept_text(digest: str) -> str:
    """Return the path at which the content with ``digest`` is stored.

    Raises ValueError for an invalid digest.
    """
    return RelativePath(f"{UNFINISHED_FOLDER}/{digest.removeprefix('sha256:')}")


def _path(path: object) -> str:
    return str(RelativePath(str(path)))
