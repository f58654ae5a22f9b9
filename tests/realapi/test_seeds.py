"""The API server refuses the mistakes in CRDs that ``verify`` reports."""

from __future__ import annotations

import yaml

from capsmith.clusters.processes.kube import KubeClient
from tests.realapi.crd_verdicts import RULES
from tests.realapi.seed_verdicts import RECORD, ask, list_seeded_crds


def test_one_mistake_in_nine_is_refused(api: KubeClient) -> None:
    """``python -m tests.realapi.seed_verdicts`` asks of all.

    Proves: CRD-23, CRD-24, CRD-25, CRD-26.
    """
    asked = list(ask(api, list_seeded_crds()[::9]))
    assert asked
    assert [each.seeded.name for each in asked if not each.message] == []


def test_each_rule_on_the_validity_of_crds_has_a_record() -> None:
    record = yaml.safe_load(RECORD.read_text(encoding="utf-8"))
    assert set(record) == set(RULES)
    assert all(entry["part"] and entry["message"] for entry in record.values())
