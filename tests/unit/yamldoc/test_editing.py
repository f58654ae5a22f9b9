"""Edits of a provider.yaml: what is written, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capsmith.yamldoc.document import parse_document
from capsmith.yamldoc.editing import Edited, set_keys
from capsmith.yamldoc.layout import parse_layout

HEAD = "capsmith: 1\n"
BOTH = {"contracts": ["v1beta1", "v1beta2"]}
VERSIONS: dict[str, Any] = {
    "apiVersions": [
        {"name": "v1alpha1", "contract": "v1beta1"},
        {"name": "v1alpha2", "contract": "v1beta2", "storage": True},
    ]
}
RELEASES = {"releases": {"v0.1": "v1beta1", "v0.2": "v1beta2"}}


def edit(text: str, values: dict[str, Any]) -> Edited:
    document, findings = parse_document(text, "provider.yaml")
    assert document is not None, findings
    return set_keys(text, document, values, after="contracts")


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        ("contracts: [v1beta1]\n", BOTH, "contracts: [v1beta1, v1beta2]\n"),
        ("contracts: [ 'v1beta1' , ] # c", BOTH, "contracts: [ 'v1beta1', 'v1beta2' , ] # c"),
        (
            "contracts:\n- v1beta1 # c\n\n# d\n",
            BOTH,
            "contracts:\n- v1beta1 # c\n- v1beta2\n\n# d\n",
        ),
        ("contracts:\r\n  - v1beta1", BOTH, "contracts:\r\n  - v1beta1\r\n  - v1beta2"),
        ("contracts: [v1beta1]", {"contracts": ["v1beta2"]}, "contracts: [v1beta2]"),
        (
            "contracts: [v1beta1]\nname: a\n",
            VERSIONS,
            "contracts: [v1beta1]\napiVersions:\n  - {name: v1alpha1, contract: v1beta1}\n"
            "  - {name: v1alpha2, contract: v1beta2, storage: true}\nname: a\n",
        ),
        (
            'apiVersions: ["v1alpha1"]',
            VERSIONS,
            'apiVersions: [{"name": "v1alpha1", "contract": "v1beta1"}, '
            '{"name": "v1alpha2", "contract": "v1beta2", "storage": true}]',
        ),
        (
            "apiVersions:\n  - name: v1alpha1 # c\nname: a\n",
            VERSIONS,
            "apiVersions:\n  - name: v1alpha1 # c\n    contract: v1beta1\n"
            "  - {name: v1alpha2, contract: v1beta2, storage: true}\nname: a\n",
        ),
        ("releases: {v0.1: v1beta1}", RELEASES, "releases: {v0.1: v1beta1, v0.2: v1beta2}"),
        (
            "releases:\n  # old\n  v0.1: v1beta1",
            {"releases": {"v0.2": "v1beta2", "v0.1": "v1beta1"}},
            "releases:\n  # old\n  v0.2: v1beta2\n  v0.1: v1beta1",
        ),
        (
            "apiVersions:\n  - {name: v1alpha1} # gone\n  - name: v1alpha2 # stays\n",
            {"apiVersions": [{"name": "v1alpha2"}]},
            "apiVersions:\n  # gone\n  - name: v1alpha2 # stays\n",
        ),
        ("contracts:\n- v1beta2\n- v1beta1  ", {"contracts": ["v1beta2"]}, "contracts:\n- v1beta2"),
        (
            "contracts:\n- v1beta1 \n- v1beta2\n",
            {"contracts": ["v1beta2"]},
            "contracts:\n- v1beta2\n",
        ),
        (
            "apiVersions:\n  - v1alpha2\n  - v1alpha1",
            {"apiVersions": ["v1alpha2"]},
            "apiVersions:\n  - v1alpha2",
        ),
    ],
)
def test_only_the_span_changes(text: str, values: dict[str, Any], result: str) -> None:
    assert edit(HEAD + text, values) == Edited(HEAD + result)


def test_json_stays_json() -> None:
    text = '{"contracts": ["v1beta1"], "releases": {"v0.1": "v1beta1"}}'
    done = edit(text, BOTH | VERSIONS | RELEASES)
    assert done.finding is None
    assert parse_document(done.text, "provider.yaml")[0] is not None
    assert json.loads(done.text) == BOTH | VERSIONS | RELEASES


@pytest.mark.parametrize(
    ("text", "values", "line", "column"),
    [
        ("a: &a [v1beta1]\ncontracts: *a\n", BOTH, 3, 12),
        ("contracts: &a [v1beta1]\na: *a\n", BOTH, 2, 12),
        ("contracts:\n  - &a v1beta1\na: *a\n", {"contracts": ["v1beta2"]}, 3, 3),
        ("contracts:\n  - |-\n    v1beta1\n", {"contracts": ["v1beta2"]}, 3, 3),
        ("apiVersions:\ncontracts: [v1beta1]\n", VERSIONS, 2, 13),
        ("releases:\n  ? v0.1\n  : v1beta1\n", RELEASES, 3, 3),
        ("releases: {v0.1: v1beta1}\n", {"releases": {"v0.2": "v1beta1"}}, 2, 11),
        ("a: 1\n", BOTH, 1, 1),
    ],
)
def test_unsafe_edits_are_reported(
    text: str, values: dict[str, Any], line: int, column: int
) -> None:
    done = edit(HEAD + text, values)
    assert done.text == HEAD + text
    assert done.finding is not None
    assert done.finding.id == "spec-not-editable"
    assert (done.finding.location.line, done.finding.location.column) == (line, column)
    assert next(iter(values)) in done.finding.hint


def test_a_block_ends_where_its_last_word_does() -> None:
    text = "a:\n  - b   # c\n\n# d\ne: 1\n"
    node = parse_layout(text).get("a")
    assert node is not None
    assert text[node[1].start : node[1].end] == "- b"
