"""metadata.yaml is judged as clusterctl decodes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.releases import crd, violations, write


@pytest.mark.parametrize(
    ("minor", "expected"),
    [(2**31 - 1, False), (2**31, True), (-(2**31) - 1, True), (1.5, True), (True, True)],
)
def test_numbers_of_series_have_32_bits(tmp_path: Path, minor: object, expected: bool) -> None:
    series = [{"major": 0, "minor": minor, "contract": "v1beta2"}]
    metadata = {
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
        "kind": "Metadata",
        "releaseSeries": series,
    }
    write(tmp_path, metadata, name="metadata.yaml")
    write(tmp_path, crd("AcmeMachine"))
    found = [each for each in violations(str(tmp_path)) if each["id"] == "CC-05"]
    assert bool(found) is expected
