"""A contract upgrade of a provider.yaml in any layout changes only what it has to change."""

from __future__ import annotations

import re
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith.commands.load import load_text
from capsmith.findings import has_errors
from capsmith.provider.draft import Draft
from capsmith.provider_upgrade.request import UpgradeRequest, update_values, validate_request
from capsmith.yamldoc.document import Document
from capsmith.yamldoc.editing import set_keys
from tests.properties.layouts import Pen

OLD, NEW = "v1beta1", "v1beta2"
STATES: tuple[dict[str, Any], ...] = (
    {"contracts": [OLD], "releases": {"v0.1": OLD}},
    {"contracts": [OLD], "releases": {"v0.2": OLD, "v0.1": OLD}, "apiVersions": ["v1alpha1"]},
    {
        "contracts": [OLD],
        "releases": {"v1.9": OLD},
        "apiVersions": ["v1alpha1", {"name": "v1", "storage": True}, {"name": "v1beta1"}],
    },
    {
        "contracts": [OLD],
        "releases": {"v0.9": OLD},
        "apiVersions": [{"name": "v1beta1", "contract": OLD, "served": True}],
    },
    {
        "contracts": [NEW, OLD],
        "releases": {"v0.1": OLD, "v0.2": NEW},
        "apiVersions": [
            {"name": "v1alpha1", "contract": OLD, "served": False},
            {"name": "v1alpha2", "contract": OLD},
            {"name": "v1alpha3", "contract": NEW, "storage": True},
        ],
    },
    {
        "contracts": [NEW],
        "releases": {"v0.3": NEW, "v0.2": NEW, "v0.1": OLD},
        "apiVersions": [
            {"served": False, "name": "v1alpha1", "contract": OLD},
            {"name": "v1alpha2", "storage": True, "contract": NEW},
        ],
    },
)
WISHES = (
    UpgradeRequest((OLD, NEW)),
    UpgradeRequest((NEW, OLD), api_version="v2", release="v3.0"),
    UpgradeRequest((NEW,), keep_api_version=True),
    UpgradeRequest((NEW,)),
    UpgradeRequest(drop=("v1alpha1",)),
)


@settings(max_examples=250)
@given(st.data())
def test_it_means_what_was_meant_and_the_rest_stays(data: st.DataObject) -> None:
    """Proves: CC-08, CC-09."""
    state = data.draw(st.sampled_from(STATES))
    pen = Pen(data.draw)
    text, kept = pen.text(state)
    if not data.draw(st.booleans()):
        text = text.rstrip("\n")
    if data.draw(st.booleans()):
        text, kept = text.replace("\n", "\r\n"), [part.replace("\n", "\r\n") for part in kept]
    draft, document = _draft(text)
    possible = [w for w in WISHES if not validate_request(w, draft, document)]
    values = update_values(data.draw(st.sampled_from(possible)), draft, document)
    result = set_keys(text, document, values, after="contracts")
    assert result.finding is None, text
    before, after = yaml.safe_load(text), yaml.safe_load(result.text)
    assert after == {**before, **values}
    understood = load_text(result.text, "provider.yaml")
    assert not has_errors(understood.findings), understood.findings
    assert [after["releases"].get(series) for series in state["releases"]] == list(
        state["releases"].values()
    )
    check_layout(text, result.text, kept, pen.comments)


@settings(max_examples=100)
@given(st.data())
def test_a_key_is_added_and_the_rest_stays(data: st.DataObject) -> None:
    pen = Pen(data.draw)
    text, kept = pen.text(STATES[0])
    if not data.draw(st.booleans()):
        text = text.rstrip("\n")
    _, document = _draft(text)
    result = set_keys(text, document, {"runtime": "package"}, after="releases")
    assert result.finding is None, text
    assert yaml.safe_load(result.text) == {**yaml.safe_load(text), "runtime": "package"}
    check_layout(text, result.text, kept, pen.comments)


def _draft(text: str) -> tuple[Draft, Document]:
    loaded = load_text(text, "provider.yaml")
    assert loaded.draft is not None
    assert loaded.document is not None
    return loaded.draft, loaded.document


def check_layout(text: str, result: str, kept: list[str], comments: list[str]) -> None:
    """Check that untouched keys, the order of comments and the line endings are unchanged."""
    for part in kept:
        bare = part.rstrip("\r\n")
        assert bare in result
        assert result.count(bare) == text.count(bare)
    assert re.findall(r"c\d+-", result) == comments
    assert ("\r" in result) == ("\r" in text)
    assert len(re.findall(r"(?<!\r)\n", result)) == 0 or "\r" not in text
    assert result.endswith("\n") == text.endswith("\n")


def test_every_request_is_possible_for_some_provider() -> None:
    reached = set()
    for state in STATES:
        head = {"capsmith": 1, "name": "acme", "repository": "https://a.example/b/c"}
        text = yaml.safe_dump(head | state)
        draft, document = _draft(text)
        for wish in WISHES:
            errors = validate_request(wish, draft, document)
            if not errors and update_values(wish, draft, document):
                reached.add(wish)
    assert reached == set(WISHES)
