from __future__ import annotations

import pytest

from capsmith import resources
from capsmith.commands import reference
from capsmith.contract.explain import (
    explain,
    find_similar_ids,
    format_lines,
    format_row,
    list_rules,
)
from capsmith.contract.load import load_all_rules, load_rules
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
    text = "\n".join(format_lines(data))
    for part in ("MUST", "It applies when", data["hint"], data["source"], "template-dry-run"):
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
    assert text in "\n".join(format_lines(data))


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_every_rule_can_be_explained(rule: Rule) -> None:
    text = "\n".join(format_lines(explain(RULES, rule.id)))
    assert rule.statement in text
    assert rule.consequence in text


@pytest.mark.parametrize(("rule_id", "option"), [("UP-01", "--upgrade"), ("LV-03", "--live")])
def test_rules_on_releases_name_the_option(rule_id: str, option: str) -> None:
    data = explain(load_all_rules(resources.schemas()), rule_id)
    assert data["checked"] == {"by": "verify", "option": option}
    assert data["effect"]["class"] == "breaks"
    assert f"Checked by `capsmith verify {option}`. Class: breaks." in format_lines(data)


def test_releases_that_no_test_runs_are_named() -> None:
    unknown, run = reference.explain_rule("CP-33"), reference.explain_rule("CP-09")

    assert (unknown["coreFromSource"], run["coreFromSource"]) == (["v1.12"], [])
    assert "since v1.12 (v1.12 as read from source)." in "\n".join(format_lines(unknown))
    assert "since v1.14." in "\n".join(format_lines(run))


def test_origin_and_releases_of_core() -> None:
    data = explain(RULES, "MP-13")
    assert data["origin"] == "observed"
    assert data["core"] == {"since": "v1.11"}
    text = "\n".join(format_lines(data))
    assert "no page of the contract promises it. Releases of core: since v1.11." in text
    assert "deprecated in v1.14" in "\n".join(format_lines(explain(RULES, "CP-39")))
    assert "Releases" not in "\n".join(format_lines(explain(RULES, "CRD-10"))[3:4])
    assert format_row(data)[2:5] == ["observed", "v1beta1,v1beta2", "since v1.11"]


@pytest.mark.parametrize(
    ("rule_id", "effect", "text"),
    [
        ("IM-01", {"class": "breaks", "when": "", "roles": []}, "breaks"),
        (
            "CP-39",
            {"class": "breaks-when", "when": "core is v1.13 or older", "roles": []},
            "breaks when core is v1.13 or older",
        ),
        ("CRD-15", {"class": "advice", "when": "", "roles": []}, "advice"),
    ],
)
def test_what_a_violation_does(rule_id: str, effect: dict[str, object], text: str) -> None:
    data = explain(RULES, rule_id)
    assert data["effect"] == effect
    assert f"Class in capsmith verify: {text}.\n" in "\n".join(format_lines(data))


def test_a_class_for_some_roles() -> None:
    partial = next(rule for rule in RULES.values() if rule.effect.roles)
    data = explain(RULES, partial.id)
    assert data["effect"]["roles"] == list(partial.effect.roles)
    assert f", for {', '.join(partial.effect.roles)}.\n" in "\n".join(format_lines(data))


def test_a_rule_without_a_check_has_no_class() -> None:
    data = explain(RULES, "SM-01")
    assert data["effect"] == {}
    assert "Class" not in "\n".join(format_lines(data))


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
    assert "SM-01" in find_similar_ids(RULES, "pausing")


def test_filters() -> None:
    assert len(list_rules(RULES)) == len(RULES)
    found = list_rules(RULES, page="infra-machine", contract="v1beta1", level="MUST")
    ids = [row["id"] for row in found]
    assert "IM-02" in ids
    assert "IM-01" not in ids
    assert {row["page"] for row in found} == {"infra-machine"}
    assert {row["level"] for row in found} == {"MUST"}


@pytest.mark.parametrize("filters", [{"page": "nowhere"}, {"contract": "v1alpha3"}])
def test_filters_that_no_rule_can_pass(filters: dict[str, str]) -> None:
    with pytest.raises(UnreadableInput) as caught:
        list_rules(RULES, **filters)
    assert caught.value.finding.hint.startswith("Use one of: ")
