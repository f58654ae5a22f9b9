"""The simulated infrastructure of new repositories keeps its servers as files."""

from __future__ import annotations

import runpy
from pathlib import Path

_SOURCE = Path(__file__).parent / "acme/expected/src/cluster_api_provider_acme/cloud.py"
_UID = "7a63f8ac-64ea-4418-a269-b0492572c6a7"


def test_names_of_objects_may_be_longer_than_those_of_files(tmp_path: Path) -> None:
    cloud = runpy.run_path(str(_SOURCE))["SimulatedCloud"](tmp_path)
    one, other = (f"{'n' * 253}.{uid}" for uid in (_UID, _UID[::-1]))

    created = cloud.create_cluster(one, "name")

    assert cloud.find_cluster(one) == created
    assert cloud.find_cluster(other) is None
    assert cloud.delete_cluster(one)
    assert cloud.find_cluster(one) is None
