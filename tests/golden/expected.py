"""Expected trees of cases, of which most keep only the files that no other case has.

The cases in ``WHOLE`` keep every file.  Any other case keeps its lock, which names each file with
the digest of its text, and those files whose text is not that of an earlier case, with the names
of one provider replaced by those of the other, or that of another component of its own.  Each file
is still compared byte for byte: a derived text counts only if it has the digest in the lock.

The tree with derived texts is written to ``build/golden``, for tests that read it as files.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from capsmith.commands.build import SCHEMA_PATH
from capsmith.commands.load import load
from capsmith.merging.lock import LOCK_PATH
from capsmith.output.reference import AUTHOR_API_PATH
from capsmith.provider.model import Provider
from capsmith.tree import SPEC_NAME, digest
from tests.golden.files import File, read, write

_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent
_BUILT = _ROOT / "build" / "golden"
WHOLE = ("acme", "everything", "control-plane")
"""Cases with all of their files."""
ORDER = (
    *WHOLE,
    *(
        "two-contracts",
        "complete",
        "homelab",
        "pools",
        "managed",
        "bootstrap",
        "extension",
        "homelab-v1beta1",
    ),
)
"""Cases, each before those whose texts are derived from it."""
BASE = ".capsmith/base/"
VENDOR = "vendor/"
OVERLAY = "blueprints/"
"""The folder of the author's blueprints, in those cases that have some."""
_COPIES = frozenset({str(SPEC_NAME), str(SCHEMA_PATH), str(AUTHOR_API_PATH)})


def sources(name: str) -> tuple[str, ...]:
    """Return the cases that texts of a case may be derived from."""
    return ORDER[: ORDER.index(name)] if name not in WHOLE else ()


def kept_folder(name: str) -> Path:
    """Return the folder with the files that a case keeps."""
    return _HERE / name / "expected"


@cache
def expected_folder(name: str) -> Path:
    """Return a folder with the whole expected tree of a case; do not write there.

    Raises LookupError if the case lacks a file: ``./dev golden`` keeps it.
    """
    return kept_folder(name) if name in WHOLE else _built(name, _key(name))


def _built(name: str, key: str) -> Path:
    folder = _BUILT / f"{name}-{key}"
    _BUILT.mkdir(parents=True, exist_ok=True)
    # Several processes of a test run want the same tree: one of them makes it.
    with (_BUILT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _build(name, folder)
    return folder


def _build(name: str, folder: Path) -> None:
    kept = read(kept_folder(name))
    wanted = {path: each for path, each in _digests(kept).items() if path not in kept}
    found = derive(name, frozenset(wanted.values()))
    for file in (file for path, file in kept.items() if path != LOCK_PATH):
        found = derive_components(name, file) | found
    missing = sorted(path for path, each in wanted.items() if each not in found)
    if missing:
        raise LookupError(f"run ./dev golden {name}: no case has the text of {', '.join(missing)}")
    for former in _BUILT.glob(f"{name}-{'?' * _KEY_LENGTH}"):
        shutil.rmtree(former)
    derived = {path: found[each] for path, each in wanted.items()}
    with tempfile.TemporaryDirectory(dir=_BUILT) as scratch:
        write({**kept, **derived}, Path(scratch) / name)
        (Path(scratch) / name).rename(folder)


_KEY_LENGTH = 16


def _key(name: str) -> str:
    """Return what changes when a file does that the tree is made of."""
    found = hashlib.sha256()
    for each in (name, *sources(name)):
        for path, file in read(kept_folder(each)).items():
            found.update(f"{each}/{path} {file.executable} {digest(file.text)}\n".encode())
    return found.hexdigest()[:_KEY_LENGTH]


def is_copy(path: str) -> bool:
    """Report whether a file has a text of this repository, and is in no expected tree."""
    return path in _COPIES or path.startswith((BASE, OVERLAY, VENDOR))


def _digests(files: Mapping[str, File]) -> dict[str, str]:
    """Return the digests of the files that a lock names, but for copies."""
    lock: dict[str, Any] = yaml.safe_load(files[LOCK_PATH].text)
    entries = lock["files"].items()
    return {path: entry["digest"] for path, entry in entries if not is_copy(path)}


def derive(name: str, wanted: frozenset[str]) -> dict[str, File]:
    """Return those files with these digests that follow from earlier cases."""
    found: dict[str, File] = {}
    for source in sources(name):
        tree = read(expected_folder(source))
        files = [file for path, file in tree.items() if path != LOCK_PATH]
        for rename in _renamings(_provider(source), _provider(name)):
            for file in files:
                text = rename(file.text)
                key = digest(text)
                if key in wanted:
                    found.setdefault(key, File(text, file.executable))
            if len(found) == len(wanted):
                return found
    return found


def derive_components(name: str, file: File) -> dict[str, File]:
    """Return what a file of one component of a case would be for each of the others, by digest."""
    provider = _provider(name)
    texts = {rename(file.text) for rename in _renamings(provider, provider)} - {file.text}
    return {digest(text): File(text, file.executable) for text in texts}


@cache
def _provider(name: str) -> Provider:
    specs = [folder / name / "provider.yaml" for folder in (_HERE, _ROOT / "examples")]
    provider = load(next(spec for spec in specs if spec.is_file())).provider
    assert provider is not None
    return provider


def _renamings(source: Provider, target: Provider) -> Iterator[Callable[[str], str]]:
    """Yield functions that put the names of ``target`` for those of ``source`` in a text.

    There is one for each pair of components: manifests of one component are often those of
    another one but for its names.
    """
    names = list(zip(_names(source), _names(target), strict=True))
    for one, other in itertools.product(_component_names(source), _component_names(target)):
        # The longest first, for some names are part of others.
        pairs = dict(reversed([*names, *zip(one, other, strict=True)]))
        longest = sorted(pairs, key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, longest)))

        def rename(
            text: str, pattern: re.Pattern[str] = pattern, pairs: dict[str, str] = pairs
        ) -> str:
            return pattern.sub(lambda match: pairs[match[0]], text)

        yield rename


def _names(provider: Provider) -> tuple[str, ...]:
    name = str(provider.name)
    return (
        str(provider.description),
        str(provider.repository).removeprefix("https://"),
        str(provider.image),
        str(provider.distribution),
        str(provider.package),
        str(provider.owner),
        str(provider.title),
        name.capitalize(),
        name.upper(),
        name,
    )


def _component_names(provider: Provider) -> Iterator[tuple[str, ...]]:
    for component in provider.components:
        groups = [str(resource.group) for resource in component.resources]
        yield (
            groups[0] if groups else f"(no group of {component.label})",
            component.label,
            component.namespace,
            f"{component.config}/",
            component.words,
            str(component.kind),
            f"--component={component.type}\n",
        )
