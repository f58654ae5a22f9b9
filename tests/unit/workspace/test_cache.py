"""What is kept between runs comes back whole, and only from the user's own folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capsmith.workspace.cache import FolderCache


def test_stored_values_are_returned_unless_damaged(tmp_path: Path) -> None:
    cache = FolderCache(tmp_path / "deep/cache")
    assert cache.get("key") is None
    cache.put("key", b"value")
    assert cache.get("key") == b"value"
    assert cache.get("other") is None
    (entry,) = (tmp_path / "deep/cache").iterdir()
    entry.write_bytes(entry.read_bytes() + b"!")
    assert cache.get("key") is None


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    cache = FolderCache(tmp_path)
    cache.put("key", b"value")
    tmp_path.chmod(0o777)
    assert cache.get("key") is None
    cache.put("other", b"value")
    tmp_path.chmod(0o700)
    assert cache.get("key") == b"value"
    assert cache.get("other") is None


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = FolderCache(tmp_path)
    cache.put("key", b"value")
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert cache.get("key") is None


def test_a_place_that_cannot_hold_anything_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = FolderCache(tmp_path / "file/cache")
    cache.put("key", b"value")
    assert cache.get("key") is None


@pytest.mark.parametrize("base", ["", "relative"])
def test_the_cache_is_never_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAPSMITH_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    cache = FolderCache.of_user()
    assert cache is not None
    cache.put("key", b"value")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
