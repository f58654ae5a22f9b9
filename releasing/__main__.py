"""`./dev release --dry-run | TAG`: build and check what a release publishes.

It goes to `build/release/`: `dist/` has a folder for each distribution, `assets/` what is attached
to the release, and `notes.md` its text.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from releasing.checkout import check_checkout, commit_time
from releasing.commands import FailedError
from releasing.distributions import Distribution, build_all, check_all, write_checksums
from releasing.installed import check_generator, check_library
from releasing.notes import release_notes
from releasing.versions import find_disagreements, own_version

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "build" / "release"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps; return 0, or 1 if a release must not be made."""
    parser = argparse.ArgumentParser("./dev release", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("tag", nargs="?", metavar="TAG", help="the tag of the release: v0.2.0")
    what.add_argument("--dry-run", action="store_true", help="check the working tree, of no tag")
    options = parser.parse_args(arguments)
    try:
        _release(options.tag)
    except FailedError as failed:
        print(f"release: {failed}", file=sys.stderr)
        return 1
    return 0


def _release(tag: str | None) -> None:
    version = own_version(ROOT)
    _step("versions agree", lambda: _check_versions(tag))
    shutil.rmtree(OUTPUT, ignore_errors=True)
    assets = OUTPUT / "assets"
    assets.mkdir(parents=True)
    # Both builders and the SBOMs read it: the same commit makes the same bytes.
    os.environ["SOURCE_DATE_EPOCH"] = commit_time(ROOT)
    generator = Distribution("capsmith", ROOT, OUTPUT / "dist" / "capsmith")
    library = Distribution(
        "capsmith-runtime", ROOT / "runtime", OUTPUT / "dist" / "capsmith-runtime"
    )
    both = (library, generator)
    _step("distributions are built, twice the same", lambda: build_all(both, OUTPUT / "again"))
    _step("distributions are valid", lambda: check_all(both, version))
    acme = OUTPUT / "acme"
    _step(
        "the generator works in an empty environment",
        lambda: check_generator(ROOT, generator, version, OUTPUT / "generator", acme),
    )
    _step(
        "the library carries what it generates",
        lambda: check_library(ROOT, library, version, OUTPUT / "library", acme),
    )
    for each, folder in ((generator, "generator"), (library, "library")):
        name = f"{each.name}.cdx.json"
        (OUTPUT / folder / "sbom.json").replace(assets / name)
    write_checksums(both, assets / "SHA256SUMS")
    (OUTPUT / "notes.md").write_text(release_notes(ROOT, version), encoding="utf-8")
    print(f"{OUTPUT.relative_to(ROOT)} has what a release of {version} publishes")


def _check_versions(tag: str | None) -> None:
    if tag is not None:
        check_checkout(ROOT, tag)
    found = list(find_disagreements(ROOT, tag))
    if found:
        raise FailedError("\n".join(["versions disagree:", *found]))


def _step(name: str, run: Callable[[], None]) -> None:
    begin = time.monotonic()
    run()
    print(f"{name} ({time.monotonic() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
