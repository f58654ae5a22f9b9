"""Private keys that a session writes are readable by their owner only."""

from __future__ import annotations

from pathlib import Path

from capsmith.clusters.processes.pki import EtcdTLS, Pki


def test_no_other_user_reads_keys(tmp_path: Path) -> None:
    Pki(tmp_path / "pki")
    EtcdTLS.issue(tmp_path / "etcd")
    keys = sorted(tmp_path.rglob("*.key"))
    assert len(keys) == 5
    assert {path.stat().st_mode & 0o777 for path in keys} == {0o600}
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


def test_keys_of_a_former_session_are_replaced(tmp_path: Path) -> None:
    first = EtcdTLS.issue(tmp_path).client.key.read_bytes()
    tmp_path.joinpath("client.key").chmod(0o644)
    second = EtcdTLS.issue(tmp_path)
    assert second.client.key.read_bytes() != first
    assert second.client.key.stat().st_mode & 0o777 == 0o600
    assert EtcdTLS.existing(tmp_path) == second
