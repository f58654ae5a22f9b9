"""Texts as capsmith generated them, recognised by digest, regardless of line ends."""

from __future__ import annotations

import difflib

from capsmith.errors import UnreadableInput
from capsmith.merging.lock import BASE_FOLDER, RECORDS_OF_HEAD
from capsmith.tree import digest as digest_of


def difference(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return a unified diff; empty when there is no difference.  None is a missing file."""
    if before == after:
        return ""
    if any(content is not None and b"\0" in content for content in (before, after)):
        return f"Binary files a/{path} and b/{path} differ\n"
    lines = difflib.unified_diff(
        _lines(before),
        _lines(after),
        f"a/{path}" if before is not None else "/dev/null",
        f"b/{path}" if after is not None else "/dev/null",
        lineterm="\n",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(content: bytes | None) -> list[str]:
    text = (content or b"").decode(errors="backslashreplace")
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def is_text_of(content: bytes, digest: str) -> bool:
    """Return whether ``content`` is the text with ``digest``; line ends may be ``\\r\\n``."""
    if digest_of(content) == digest:
        return True
    return b"\r\n" in content and digest_of(content.replace(b"\r\n", b"\n")) == digest


def verified_base(path: str, content: bytes | None, digest: str) -> bytes:
    """Return what was generated for the shared file ``path``: the base of its merge.

    ``content`` is the stored copy.  Raises UnreadableInput when that is missing or altered: a
    merge from another base could lose what the author wrote.
    """
    if content is None or not is_text_of(content, digest):
        raise UnreadableInput(
            "base-altered" if content is not None else "base-missing",
            "the merge requires the text that capsmith generated last, but "
            + ("this file differs from it" if content is not None else "it is missing"),
            file=f"{BASE_FOLDER}/{path}",
            hint="Restore the file from version control; after a merge of branches with "
            f"{RECORDS_OF_HEAD}.  Without version control: move {path} out of the repository, run "
            f"capsmith update --restore {path}, and bring your edits back.",
        )
    return content.replace(b"\r\n", b"\n")
