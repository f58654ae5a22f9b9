"""Manifests have the values that clusterctl and kubectl read, which sigs.k8s.io/yaml decides."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.manifests.parse import read_substituted


def read(text: str) -> tuple[list[Any], list[str]]:
    manifests, findings = read_substituted(text, "a.yaml", text, resume=True)
    return [each.document for each in manifests], [each.message for each in findings]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("y", True), ("Y", True), ("on", True), ("n", False), ("Off", False), ("tRue", "tRue")),
        *(("", None), ("~", None), ("NULL", None), ("=", "="), ("<<", "<<")),
        *(("08", 8), ("010", 8), ("0o17", 15), ("0O17", 15), ("0o8", "0o8"), ("0X1F", 31)),
        *(("0b11", 3), ("0B11", 3), ("-0b1", -1), ("1_000", 1000), ("0x", "0x"), ("+1", 1)),
        *(("1e3", 1000), ("1.e3", 1000), ("1.0", 1), ("-0.0", 0), (".5", 0.5), (".1_0", ".1_0")),
        *(("1e400", "1e400"), ("0777", 511), ("-9223372036854775809", -(2**63) - 1)),
        *(("18446744073709551615", 18446744073709551615), ("1" * 5000, "1" * 5000)),
        *(("12:30", "12:30"), ("190:20:30.5", "190:20:30.5"), ("1.2.3", "1.2.3")),
        *(("2026-01-02", "2026-01-02"), ("2026-99-99", "2026-99-99")),
        *(("!!str 1", "1"), ("!!int '1'", 1), ("!!float 1", 1), ("!!binary aGk=", "hi")),
        *(("!own a", "a"), ("!!merge a", "a"), ("!!timestamp 2026-01-02", "2026-01-02")),
        *(("!!set {a}", {"a": None}), ("!!omap [{a: 1}]", [{"a": 1}]), ("!!map [a]", ["a"])),
        *(("!!python/object:os.system {}", {}), ("&x [1]", [1])),
    ],
)
def test_values_are_those_of_go(text: str, value: Any) -> None:
    (document,), findings = read(f"a: {text}\n")
    assert findings == []
    assert document == {"a": value}
    assert type(document["a"]) is type(value)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        *(("1e3", "1000"), ("1.0", "1"), ("1.30", "1.3"), ("12345678.0", "1.2345678e+07")),
        *((".inf", ".inf"), ("-.INF", "-.inf"), (".nan", ".nan"), ("1e40", ".inf")),
        *(("0.00001", "1e-05"), ("0.0001", "0.0001"), ("y", "true"), ("010", "8")),
        *(("12:30", "12:30"), ("2026-01-02", "2026-01-02"), ("!!binary eA==", "x")),
    ],
)
def test_keys_are_those_of_go(key: str, name: str) -> None:
    assert read(f"{key}: a\n") == ([{name: "a"}], [])


def test_merges_replace_what_comes_before_them() -> None:
    text = "a: 1\n<<: [{a: 2, b: 2}, {a: 3, b: 3, c: 3}]\nb: 4\n'<<': 5\n"
    assert read(text) == ([{"a": 2, "b": 4, "c": 3, "<<": 5}], [])


@pytest.mark.parametrize("value", [".inf", "-.INF", ".NaN", "!!binary a", "!!int x", "!!bool 1"])
def test_values_that_clusterctl_refuses_are_findings(value: str) -> None:
    documents, (message,) = read(f"kind: A\n---\na: {value}\n")
    assert documents == [{"kind": "A"}]
    assert "cannot be read as YAML" in message


@pytest.mark.parametrize("value", ["[a]", "a", "[{a: 1}, b]"])
def test_only_mappings_can_be_merged(value: str) -> None:
    assert "requires mappings" in read(f"<<: {value}\n")[1][0]


@pytest.mark.parametrize(
    "separator", ["---", "--- ", "---\t", "--- # b", "---#b", "---\r", "...\n---"]
)
def test_documents_are_separated_as_clusterctl_does(separator: str) -> None:
    assert read(f"a: 1\n{separator}\nb: 2\n{separator}\n") == ([{"a": 1}, {"b": 2}], [])


@pytest.mark.parametrize("separator", ["--- {b: 2}", "---b", "--- |"])
def test_separators_with_content_are_findings(separator: str) -> None:
    text = f"a: 1\n{separator}\n"
    _, findings = read_substituted(text, "a.yaml", text, resume=True)
    assert any("nothing but a comment" in each.message for each in findings)
    assert min(each.location.line for each in findings) == 2


def test_directives_belong_to_no_document() -> None:
    assert read("%YAML 1.1\n---\na: 1\n")[1]
