"""The Go module of Cluster API's end-to-end specs, as a blueprint."""

from __future__ import annotations

import re
from pathlib import Path

from capsmith.clusters.processes.tools.catalogue import load_releases
from capsmith.commands.build import build
from capsmith.commands.load import load
from capsmith.provider.model import Role
from tests.golden.cases import EXAMPLES
from tests.releases.modules import BLUEPRINT

_PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "upstream-e2e.md"
_SPEC = r"[A-Z]\w+Spec\b"


def test_the_page_lists_the_specs_that_are_called() -> None:
    """The page has a row for each spec of Cluster API that a repository calls, and its number."""
    files = (each.read_text(encoding="utf-8") for each in BLUEPRINT.glob("*_test.go.jinja"))
    called = {name for text in files for name in re.findall(rf"\bupstream\.({_SPEC})\(", text)}
    page = _PAGE.read_text(encoding="utf-8")
    section, _, _ = page.partition("\n## The specs\n")[2].partition("\n## ")
    table, _, others = section.partition("\nThese specs do not run:\n")
    rows = re.findall(r"(?m)^\| .*", others)
    left_out = {name for row in rows for name in re.findall(_SPEC, row)}

    assert set(re.findall(rf"(?m)^\| ({_SPEC})", table)) == called
    count = rf"Of the {len(called | left_out)} specs of Cluster API v[0-9.]+, {len(called)} run\b"
    assert re.search(count, table)
    assert called.isdisjoint(left_out)


def test_the_module_pins_the_release_of_labs() -> None:
    """`./dev releases` writes the module for the default release of schemas/compatibility.yaml."""
    release = load_releases().core.default.release
    text = (BLUEPRINT / "go.mod.jinja").read_text(encoding="utf-8")

    found = re.findall(r"^\tsigs\.k8s\.io/cluster-api(\S*) (\S+)$", text, re.MULTILINE)

    assert dict(found) == {"": release, "/api": release, "/test": release}


def test_the_specs_know_each_kind_that_belongs_to_a_cluster() -> None:
    """Cluster API's check of owners fails for a kind without a check, wherever it comes from."""
    provider = load(EXAMPLES / "everything" / "provider.yaml").provider
    assert provider is not None
    text = build(provider._replace(e2e=True))["e2e/provider_test.go"].text

    known = set(re.findall(r'^\t"(\w+)",$', text, re.MULTILINE))

    # Templates of known kinds follow from these; identities are objects of the settings.
    left_out = {Role.IDENTITY, *(each for each in Role if each.is_template)}
    assert known - {"IPAddress", "IPAddressClaim"} == {
        each.kind
        for each in provider.resources
        if each.role not in left_out or each.role is Role.REMEDIATION_TEMPLATE
    }
