"""Rules in CEL: what is legal is accepted, where errors are reported, and what checking costs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from capsmith.cel_text import is_transition
from capsmith.findings import Finding
from capsmith.provider_yaml.cel import compile
from capsmith.provider_yaml.cel.environment import escape
from capsmith.yamldoc.document import find_inside
from tests.invalid.cases import judge

BASE = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine, spec: {field: FIELD}}
"""


def findings(rule: str, **schema: object) -> tuple[Finding, ...]:
    field = {"type": "string", **schema, "x-kubernetes-validations": [{"rule": rule}]}
    return judge(BASE.replace("FIELD", json.dumps(field, ensure_ascii=False)))


@pytest.mark.parametrize(
    "rule",
    [
        "self != 'a' // it's a comment (",
        "self != '(' && self != \"it's\"",
        "self.matches(r'^\\d+$')",
        "self == oldSelf || oldSelf == ''",
        "ip(self).family() == 4 || isCIDR(self)",
        "[self, 'a'] == [oldSelf, '']",
        "{'a': [1], 'b': [], self: [2]} != {}",
        "'%s %d'.format([self, 1]) != ''",
        "'%.2f%% %x %b %e %s'.format([1.5, self, true, 'NaN', [1]]) != ''",
        "self.format([1, 2]) != ''",
        "'%d'.format([dyn(self)]) != ''",
        "[self, dyn(1)] != []",
        "['a', 'b'].exists_one(i, v, i > 0 && v == self)",
        "duration(self) > duration('1h')",
    ],
)
def test_legal_rules_are_accepted(rule: str) -> None:
    assert findings(rule) == ()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("self in ['a', 1]", "the literal has values of different types, `string` and `int`"),
        ("[1, 2.0] != []", "the literal has values of different types, `int` and `double`"),
        ("[self, null] != []", "the literal has values of different types, `string` and `null`"),
        ("{'a': 1, 'b': 'c'} != {}", "different types, `int` and `string`"),
        ("{'a': 1, 1: 2} != {}", "different types, `string` and `int`"),
        ("[[self], [1]] != []", "different types, `list` and `list`"),
        ("[1, 2].all(e, e in [1, self])", "different types, `int` and `string`"),
        ("'%d'.format([self]) != ''", "cannot be used with a value of type string"),
        ("'%s %s'.format([self]) != ''", "`format` has more clauses than its 1 values"),
        ("'%s'.format([self, 1]) != ''", "`format` has 2 values, but clauses for 1"),
        ("'%q'.format([self]) != ''", "'%q' is not a clause"),
        ("'%2d'.format([1]) != ''", "'%2' is not a clause"),
        ("'%.f'.format([1.5]) != ''", "'%.f' is not a clause"),
        ("'100%'.format([]) != ''", "'%' is not a clause"),
        ("['%f'.format([1])] != []", "cannot be used with a value of type int"),
        ("duration(1) == duration('1s')", "`duration` cannot be used with (int)"),
    ],
)
def test_what_only_cel_go_refuses_is_refused(rule: str, message: str) -> None:
    (finding,) = findings(rule)
    assert finding.severity == "error"
    assert message in finding.message


def test_the_place_of_a_value_of_another_type_is_named() -> None:
    text = BASE.replace("FIELD", json.dumps({"type": "string", **_mixed()}))
    (finding,) = judge(text)
    line = text.splitlines()[finding.location.line - 1]
    assert line[finding.location.column - 1 :].startswith("1.5")


def _mixed() -> dict[str, object]:
    return {"x-kubernetes-validations": [{"rule": "size([1, 1.5]) > size(self)"}]}


@pytest.mark.parametrize(
    "rule", ["(" * 200 + "true" + ")" * 200, "self == ''" + " && self" + " + self" * 900 + " == ''"]
)
def test_what_is_too_deep_for_the_library_is_a_warning(rule: str) -> None:
    (finding,) = findings(rule)
    assert (finding.id, finding.severity) == ("schema-rule-unchecked", "warning")


def test_errors_name_the_field_that_was_probably_meant() -> None:
    text = (
        "{type: object, properties: {additionalTags: string}, x-kubernetes-validations: "
        "[{rule: self.additionlTags == 'a'}]}"
    )
    (finding,) = judge(BASE.replace("FIELD", text))
    line = BASE.replace("FIELD", text).splitlines()[finding.location.line - 1]
    assert line[finding.location.column - 1 :].startswith(".additionlTags")
    assert finding.hint == "Did you mean `additionalTags`?"


def test_the_library_is_loaded_for_rules_only() -> None:
    code = (
        "import sys\n"
        "from tests.invalid.cases import judge\n"
        f"judge({BASE.replace('FIELD', '{type: string, immutable: true}')!r})\n"
        "print('cel_expr_python' in sys.modules, 'google.protobuf' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("self == oldSelf", True),
        ("self == 'oldSelf' // oldSelf", False),
        ("self.oldSelf == 'a'", False),
        ("oldSelfish", False),
    ],
)
def test_only_a_rule_that_reads_the_old_value_is_a_transition(rule: str, expected: bool) -> None:
    assert is_transition(rule) is expected


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("size", "size"),
        ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("1a", None),
        ("ä", None),
    ],
)
def test_names_are_escaped_as_by_the_api_server(name: str, escaped: str | None) -> None:
    assert escape(name) == escaped


@pytest.mark.parametrize(
    ("source", "text", "place", "expected"),
    [
        ("a: b c", "b c", (1, 3), (1, 6)),
        ("a: 'b c'", "b c", (1, 3), (1, 7)),
        ('a: "b\\tc"', "b\tc", (1, 3), None),
        ("a: b\n   c", "b c", (1, 3), None),
        ("a: |\n    b\n\n      c\n", "b\n\n  c\n", (3, 3), (4, 7)),
        ("a: |2-\n    b", "  b", (1, 3), (2, 5)),
        ("a: >\n  b\n  c", "b c\n", (1, 3), None),
    ],
)
def test_positions_inside_a_text(
    source: str, text: str, place: tuple[int, int], expected: tuple[int, int] | None
) -> None:
    assert find_inside(source, (1, 4), text, place) == expected


def test_names_that_differ_by_an_underscore_only_are_two_fields() -> None:
    field = {
        "type": "object",
        "properties": {"ip_address": {"type": "string"}, "ipAddress": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.ip_address == '' && self.ipAddress > 0"}],
    }
    found = judge(BASE.replace("FIELD", json.dumps(field)))
    assert {finding.id for finding in found} == {"field-attribute-clash"}


def test_the_literals_of_a_long_rule_are_checked_in_one_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = " || ".join(f"self == 'v{i}'" for i in range(300))
    rule += "\n|| self.matches('(') || self.matches(r'^a$')"
    scanned = 0

    class Counting:
        """Counts the characters that each search may read."""

        def __init__(self, pattern: re.Pattern[str]) -> None:
            self.pattern = pattern

        def __getattr__(self, name: str) -> Callable[..., object]:
            def call(text: str, start: int = 0, end: int | None = None) -> object:
                nonlocal scanned
                scanned += (len(text) if end is None else end) - start
                return getattr(self.pattern, name)(text, start, len(text) if end is None else end)

            return call

    monkeypatch.setattr(compile, "_CALL", Counting(compile._CALL))
    (problem,) = compile.check_literals(rule)
    assert (problem.line, problem.column) == (2, 17)
    assert scanned == len(rule)


def test_a_value_far_from_its_duplicate_in_an_enum_is_found() -> None:
    field = {"type": "string", "enum": [*(f"v{i}" for i in range(300)), "v0"]}
    (found,) = judge(BASE.replace("FIELD", json.dumps(field)))
    assert found.message == "duplicate enum value `v0`"


def test_a_rule_is_as_long_as_api_servers_accept() -> None:
    compiler = compile.Compiler.of({"type": "string"})
    rule = "self == ''" + " " * 99_990
    assert compiler.problems(rule) == []
    (problem,) = compiler.problems(f"{rule} ")
    assert "100,001 characters" in problem.message
    assert not problem.undecided
