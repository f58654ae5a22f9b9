"""The distributions: built reproducibly, and judged as a package index does."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from releasing.commands import FailedError, run


class Distribution(NamedTuple):
    """A package to be released, and where its files go."""

    name: str
    source: Path
    folder: Path

    @property
    def wheel(self) -> Path:
        """Return the wheel, which :func:`build_all` has made."""
        (wheel,) = self.folder.glob("*.whl")
        return wheel


def build_all(distributions: Iterable[Distribution], scratch: Path) -> None:
    """Build source distribution and wheel of each; the wheel of the source distribution.

    They are built a second time into ``scratch``, the wheel without the source distribution.
    Raises FailedError if that gives other bytes: then a file is missing in the source distribution,
    or the build depends on more than the commit.
    """
    build = [sys.executable, "-m", "build", "--no-isolation"]
    for each in distributions:
        again = scratch / each.name
        run([*build, "--outdir", each.folder], each.source)
        run([*build, "--sdist", "--wheel", "--outdir", again], each.source)
        one, other = digests(each.folder), digests(again)
        differing = sorted(name for name in one | other if one.get(name) != other.get(name))
        if differing:
            raise FailedError(f"the second build differs: {', '.join(differing)}")


def check_all(distributions: Iterable[Distribution], version: str) -> None:
    """Raise FailedError for metadata that an index would refuse, or another version."""
    for each in distributions:
        stem = f"{each.name.replace('-', '_')}-{version}"
        expected = {f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"}
        found = {path.name for path in each.folder.iterdir()}
        if found != expected:
            raise FailedError(f"{each.name} is {sorted(found)}, not {sorted(expected)}")
        files = sorted(each.folder.iterdir())
        run([sys.executable, "-m", "twine", "check", "--strict", *files], each.source)


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 digest of each file in ``folder``, by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def write_checksums(distributions: Iterable[Distribution], file: Path) -> None:
    """Write ``file`` as `sha256sum --check` reads it."""
    found = {
        name: digest for each in distributions for name, digest in digests(each.folder).items()
    }
    lines = [f"{digest}  {name}\n" for name, digest in sorted(found.items())]
    file.write_text("".join(lines), encoding="utf-8")
