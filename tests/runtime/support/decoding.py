"""Records which cached objects are decoded, whose size their owners determine."""

from __future__ import annotations

import pytest

from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.encoded_objects import EncodedObjects, _Entry


def record_decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the names of all objects that are decoded from now on are added."""
    names: list[str] = []
    decode = EncodedObjects._decode

    def record(objects: EncodedObjects, entry: _Entry) -> JSON:
        names.append(entry.name)
        return decode(objects, entry)

    monkeypatch.setattr(EncodedObjects, "_decode", record)
    return names
