"""`verify` refuses the CRDs that the API server refuses, and no others."""

from __future__ import annotations

from capsmith.clusters.processes.kube import KubeClient
from tests.crd_keywords import REFUSED, TAKEN, make_crd, make_crd_with_empty_label
from tests.realapi.crd_mutants import make_base, make_mutants
from tests.realapi.crd_verdicts import compare, find_messages, find_refusal

COUNT = 63
"""Three of each sort of change."""

DIFFERED = {
    5: (180, 292),
    6: (21, 314, 429),
    7: (120, 355),
    12: (887, 936),
    13: (534,),
    21: (925,),
    23: (801,),
    32: (299,),
    33: (225,),
}
"""Numbers of changed CRDs by seed: empty schemas and lists, keywords below anyOf, limits of another
type, and defaults of fields with rules on the old value or list types."""


def test_verify_has_the_verdict_of_the_server(api: KubeClient) -> None:
    """A sample; `python -m tests.realapi.crd_verdicts` compares more.

    Proves: CRD-24, CRD-25, CRD-26.
    """
    verdicts = compare(api, make_mutants(COUNT))
    assert [str(verdict) for verdict in verdicts if not verdict.is_explained] == []
    assert COUNT / 4 < sum(bool(verdict.refusal) for verdict in verdicts) < COUNT


def test_changes_on_which_the_verdicts_differed(api: KubeClient) -> None:
    """Proves: CRD-24, CRD-25."""
    found = [
        mutant
        for seed, numbers in DIFFERED.items()
        for mutant in make_mutants(max(numbers) + 1, seed)
        if int(mutant.text.partition(":")[0]) in numbers
    ]
    verdicts = compare(api, found)
    assert len(verdicts) == sum(map(len, DIFFERED.values()))
    assert [str(verdict) for verdict in verdicts if not verdict.is_explained] == []


def test_both_take_the_crd_without_changes(api: KubeClient) -> None:
    assert find_refusal(api, make_base()) == ""
    assert find_messages(make_base()) == ()


def test_keywords_have_the_verdict_of_the_server(api: KubeClient) -> None:
    """Proves: CRD-24."""
    taken = [*map(make_crd, TAKEN), make_crd_with_empty_label()]
    refused = list(map(make_crd, REFUSED))
    verdicts = compare(api, [*taken, *refused])
    assert [str(verdict) for verdict in verdicts if not verdict.is_same] == []
    assert [bool(verdict.refusal) for verdict in verdicts] == [False] * len(taken) + [True] * len(
        refused
    )
