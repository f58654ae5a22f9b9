"""Texts as capsmith generated them, recognised by digest, regardless of line ends."""

from __future__ import annotations

from capsmith.errors import UnreadableInput
from capsmith.merging.lock import BASE_FOLDER, RECORDS_OF_HEAD
from capsmith.tree import digest as digest_of


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
