from __future__ import annotations

import pytest

from capsmith import resources
from capsmith.contract.explain import explain, lines, listing, similar
from capsmith.contract.load import load_rules
from capsmith.contract.model import Rule
from capsmith.errors import UnreadableInput

RULES = load_rules(resources.schemas())


def test_a_rule_in_full() -> None:
    data = explain(RULES, " im-14 ")
    assert data["id"] == "IM-14"
    assert data["contracts"] == ["v1beta1", "v1beta2"]
    assert data["checked"] == {
        "by": "static",
        "check": "template-dry-run",
        "with": {"annotation": "topology.cluster.x-k8s.io/dry-run"},
    }
    text = "\n".join(lines(data))
    for part in ("MUST", "It binds when", data["hint"], data["source"], "template-dry-run"):
        assert part in text


@pytest.mark.parametrize(
    ("rule_id", "by", "text"),
    [
        ("SM-01", "behaviour", "a test that drives the controller"),
        ("CC-08", "runtime", "clusterctl"),
        ("GEN-03", "nobody", "Source:"),
    ],
)
def test_how_a_rule_is_verified(rule_id: str, by: str, text: str) -> None:
    data = explain(RULES, rule_id)
    assert data["checked"]["by"] == by
    assert text in "\n".join(lines(data))


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_every_rule_can_be_explained(rule: Rule) -> None:
    text = "\n".join(lines(explain(RULES, rule.id)))
    assert rule.statement in text
    assert rule.consequence in text


@pytest.mark.parametrize("wrong", ["IC-5", "ic05", "IC_05"])
def test_an_unknown_rule_is_answered_with_the_one_meant(wrong: str) -> None:
    with pytest.raises(UnreadableInput) as caught:
        explain(RULES, wrong)
    assert caught.value.finding.hint.startswith("Did you mean IC-05")


def test_an_unknown_rule_that_resembles_nothing() -> None:
    with pytest.raises(UnreadableInput) as caught:
        explain(RULES, "??")
    assert "capsmith rules" in caught.value.finding.hint


def test_words_of_titles_are_found() -> None:
    assert "SM-01" in similar(RULES, "pausing")


def test_filters() -> None:
    assert len(listing(RULES)) == len(RULES)
    found = listing(RULES, page="infra-machine", contract="v1beta1", level="MUST")
    ids = [row["id"] for row in found]
    assert "IM-02" in ids
    assert "IM-01" not in ids
    assert {row["page"] for row in found} == {"infra-machine"}
    assert {row["level"] for row in found} == {"MUST"}


@pytest.mark.parametrize("filters", [{"page": "nowhere"}, {"contract": "v1alpha3"}])
def test_filters_that_no_rule_can_pass(filters: dict[str, str]) -> None:
    with pytest.raises(UnreadableInput) as caught:
        listing(RULES, **filters)
    assert caught.value.finding.hint.startswith("Use one of: ")
