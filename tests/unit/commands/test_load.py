"""The user's cache of capsmith's own data."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith.commands.load import load_contract_data


def test_data_from_the_cache_are_those_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPSMITH_CACHE", "")
    read = load_contract_data.__wrapped__()
    monkeypatch.setenv("CAPSMITH_CACHE", str(tmp_path))
    load_contract_data.__wrapped__()
    (entry,) = tmp_path.iterdir()
    written = entry.stat().st_mtime_ns
    recalled = load_contract_data.__wrapped__()
    assert entry.stat().st_mtime_ns == written
    assert recalled.supported == read.supported
    assert recalled.contracts == read.contracts
    for one, other in zip(recalled.contracts, read.contracts, strict=True):
        assert one.rules == dict(other.rules)
        assert one.types == dict(other.types)
        assert one.hooks == dict(other.hooks)
        assert one.upgrades == dict(other.upgrades)


def test_a_damaged_entry_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPSMITH_CACHE", str(tmp_path))
    read = load_contract_data.__wrapped__()
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])
    assert load_contract_data.__wrapped__().supported == read.supported
