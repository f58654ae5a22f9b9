from __future__ import annotations

import pytest

from capsmith.manifests import parse as manifests
from capsmith.manifests.parse import Manifest, at, list_of, mapping_of, parse_manifests

TWO = """\
# comment
apiVersion: v1
kind: Namespace
metadata: {name: acme-system}
---
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: acme}
spec: {replicas: 1}
"""


def only(text: str) -> Manifest:
    (manifest,), findings = parse_manifests(text, "a.yaml")
    assert findings == ()
    return manifest


def test_documents_know_where_they_begin() -> None:
    parsed, findings = parse_manifests(TWO, "folder/a.yaml")
    assert findings == ()
    assert [(m.kind, m.name, m.line) for m in parsed] == [
        ("Namespace", "acme-system", 2),
        ("Deployment", "acme", 7),
    ]
    assert parsed[1].api_group == "apps"
    assert parsed[0].api_group == ""
    assert parsed[0].base_name == "a.yaml"
    assert str(parsed[1].location) == "folder/a.yaml:7:1"
    assert parsed[1].text == TWO


def test_lists_are_taken_apart() -> None:
    text = "kind: List\nitems:\n- {kind: A}\n- nothing\n- {kind: B}\n"
    parsed, _ = parse_manifests(text, "a.yaml")
    assert [manifest.kind for manifest in parsed] == ["A", "B"]


def test_variables_are_replaced_by_their_defaults() -> None:
    manifest = only("kind: A\nport: ${PORT:=8443}\nname: ${NAME}\n")
    assert manifest.document == {"kind": "A", "port": 8443, "name": "${NAME}"}
    assert "${PORT:=8443}" in manifest.text


def test_what_is_not_there_is_empty() -> None:
    manifest = only("metadata: text\nspec: [1]\n")
    assert manifest.name == ""
    assert manifest.mapping("metadata") == {}
    assert manifest.mapping("spec", "template") == {}
    assert manifest.listing("metadata") == []
    assert at(None, "a") is None
    assert mapping_of([]) == {}
    assert list_of({"a": [1]}, "a") == [1]


@pytest.mark.parametrize(
    ("text", "id", "line"),
    [
        ("a: 1\nb: [\n", "manifest-yaml", 3),
        ("kind: A\n---\n- 1\n", "manifest-not-a-mapping", 3),
        ("a: !!bool maybe\n", "manifest-yaml", 0),
        ("a: !!timestamp now\n", "manifest-yaml", 0),
        ("a: !!int x\n", "manifest-yaml", 0),
        ("a: !!float x\n", "manifest-yaml", 0),
        ("a: &a\n  b: *a\n", "manifest-yaml", 0),
        ("[" * 900 + "]" * 900, "manifest-yaml", 0),
        ("- " * 100000 + "1\n", "manifest-yaml", 0),
        ("".join(f"{' ' * n}b:\n" for n in range(250)), "manifest-yaml", 0),
        ("kind: A\n---\n" + "[" * 900 + "]" * 900, "manifest-yaml", 0),
        # A directive is part of the document, and what only looks like a marker is none.
        ("%TAG !y! tag:yaml.org,2002:\n---\n!y!seq " + "[" * 900 + "]" * 900, "manifest-yaml", 0),
        ("[\n---x, " * 900 + "]" * 900, "manifest-yaml", 0),
    ],
)
def test_broken_text_is_a_finding(text: str, id: str, line: int) -> None:
    _, (finding,) = parse_manifests(text, "a.yaml")
    assert finding.id == id
    assert (finding.location.file, finding.location.line) == ("a.yaml", line)
    assert finding.hint


def test_what_stands_before_the_breach_is_kept() -> None:
    parsed, findings = parse_manifests("kind: A\n---\nb: [\n", "a.yaml")
    assert [manifest.kind for manifest in parsed] == ["A"]
    assert len(findings) == 1


def test_aliases_may_repeat_but_not_explode() -> None:
    assert only("a: &x {b: 1}\nc: *x\n").document["c"] == {"b": 1}
    bomb = "a0: &a0 [1, 1]\n"
    bomb += "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    _, (finding,) = parse_manifests(bomb, "a.yaml")
    assert "aliases" in finding.message


@pytest.mark.parametrize("alias", [" *x", "[*x]", "[1,*x]", "{a: *x}", '{"a":*x}'])
def test_each_form_of_an_alias_is_counted(alias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"a: &x [{'1,' * 50}]\nb: [{','.join([alias] * 9)}]\n"
    monkeypatch.setattr(manifests, "MAX_NODES", len(text) + 1)
    _, (finding,) = parse_manifests(text, "a.yaml")
    assert "aliases" in finding.message


def test_files_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MAX_CHARACTERS", 10)
    _, (finding,) = parse_manifests("kind: Deployment\n", "a.yaml")
    assert finding.id == "manifest-too-large"


def test_keys_are_strings_as_in_json() -> None:
    text = "1: a\n1.5: b\ntrue: c\n2025-05-01: d\nkind: X\nspec: {2: {on: e}, <<: {3: f}}\n"
    (manifest,), findings = parse_manifests(text, "x.yaml")
    assert findings == ()
    top = {"1": "a", "1.5": "b", "true": "c", "2025-05-01": "d", "kind": "X"}
    assert manifest.document == {**top, "spec": {"2": {"true": "e"}, "3": "f"}}


@pytest.mark.parametrize("key", ["~", "9223372036854775808", "? [a, b]\n", "!!null x"])
def test_other_keys_are_refused(key: str) -> None:
    manifests, (finding,) = parse_manifests(f"kind: X\nspec:\n  {key}: a\n", "x.yaml")
    assert manifests == ()
    assert finding.id == "manifest-yaml"
