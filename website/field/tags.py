"""Build the release files of providers from mirrors of their repositories, without network.

``python -m website.field.tags MIRRORS FOLDER`` reads bare clones in folders that are named
OWNER+NAME, and writes FOLDER/OWNER/NAME/VERSION/.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from capsmith.errors import UnreadableInput
from capsmith.workspace.kustomize import find_kustomize, run_kustomize
from website.field.model import (
    Origin,
    Provider,
    Record,
    choose_newest,
    create_release_folder,
    load_providers,
    write_record,
)


def build_releases(mirrors: Path, folder: Path, providers: list[Provider]) -> list[str]:
    """Write the newest release of each provider below ``folder``.

    Returns what is missing, and why.
    """
    missing: list[str] = []
    for provider in providers:
        clone = find_clone(mirrors, provider)
        tags = _git(clone, "tag").split() if clone else []
        tag = choose_newest(provider, tags)
        if clone is None or tag is None:
            missing.append(f"{provider.repository}: no {'mirror' if clone is None else 'release'}")
            continue
        try:
            write_release(provider, clone, tag, folder)
        except (subprocess.CalledProcessError, OSError) as error:
            missing.append(f"{provider.repository} {tag}: {error}")
    return missing


def find_clone(mirrors: Path, provider: Provider) -> Path | None:
    """Return the git directory of the provider's mirror, or None."""
    place = mirrors / provider.repository.replace("/", "+")
    return next(
        (head.parent for head in sorted([place / "HEAD", *place.glob("*/HEAD")]) if head.is_file()),
        None,
    )


def write_release(provider: Provider, clone: Path, tag: str, folder: Path) -> None:
    """Write the release files that the sources at a tag build, and their record."""
    target = create_release_folder(folder, provider, tag)
    date = _git(clone, "log", "-1", "--format=%cs", tag).strip()
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary)
        _extract(clone, tag, tree)
        problem = _build(provider, tree, target)
    record = Record(date, Origin.TAG, tuple(_list_commands(provider, tag)), problem)
    write_record(target, record)


def _build(provider: Provider, tree: Path, target: Path) -> str:
    """Write the release files; return why that is impossible, or an empty string."""
    command = find_kustomize()
    for copy, source in provider.copies.items():
        shutil.copyfile(tree / source, tree / copy)
    for name, source in provider.components.items():
        if (tree / source).is_file():
            shutil.copyfile(tree / source, target / name)
            continue
        if command is None:
            raise OSError("neither kustomize nor kubectl is installed")
        try:
            text = run_kustomize(command, tree / source).text
        except UnreadableInput as error:
            return error.finding.message.replace(f"{tree}/", "")
        (target / name).write_text(text, encoding="utf-8")
    shutil.copyfile(tree / provider.metadata, target / "metadata.yaml")
    return ""


def _list_commands(provider: Provider, tag: str) -> list[str]:
    url = f"https://github.com/{provider.repository}"
    lines = [f"git clone --depth 1 --branch {tag} {url} source", f"mkdir {tag}"]
    lines += [f"cp source/{source} source/{copy}" for copy, source in provider.copies.items()]
    for name, source in provider.components.items():
        is_file = source.endswith(".yaml")
        lines.append(
            f"cp source/{source} {tag}/{name}"
            if is_file
            else f"kubectl kustomize source/{source} > {tag}/{name}"
        )
    return [*lines, f"cp source/{provider.metadata} {tag}/metadata.yaml"]


def _extract(clone: Path, tag: str, tree: Path) -> None:
    """Write the files at a tag, except for those whose content the mirror lacks."""
    excluded = [f":(exclude,top,literal){path}" for path in _list_missing(clone, tag)]
    archive = subprocess.run(
        ["git", "--git-dir", str(clone), "archive", tag, "--", ":(top)", *excluded],
        check=True,
        capture_output=True,
    )
    subprocess.run(["tar", "-x", "-C", str(tree)], check=True, input=archive.stdout)


def _list_missing(clone: Path, tag: str) -> list[str]:
    """Return the paths at a tag whose content the mirror lacks, as that of large files."""
    paths: dict[str, list[str]] = {}
    for line in _git(clone, "ls-tree", "-r", "-z", tag).split("\0")[:-1]:
        about, _, path = line.partition("\t")
        _, type, digest = about.split()
        if type == "blob":
            paths.setdefault(digest, []).append(path)
    checked = subprocess.run(
        ["git", "--git-dir", str(clone), "cat-file", "--batch-check"],
        check=True,
        capture_output=True,
        text=True,
        input="".join(f"{digest}\n" for digest in paths),
    )
    answers = (line.split() for line in checked.stdout.splitlines())
    return [path for digest, answer, *_ in answers if answer == "missing" for path in paths[digest]]


def _git(clone: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(clone), *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout


if __name__ == "__main__":
    for line in build_releases(Path(sys.argv[1]), Path(sys.argv[2]), load_providers()):
        print(line, file=sys.stderr)
