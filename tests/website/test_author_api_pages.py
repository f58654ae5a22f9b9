"""The reference of the author API: each public name has one entry, and each entry a description."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import griffe
import pytest

from tests.website.pages import ROOT
from website.author_api import SUPPORT, author_api_pages
from website.author_modules import author_modules, link_names, shared_names
from website.examples import example_pages
from website.generated import generated_pages, link_titles

PAGES = author_api_pages()
MODULES = {each.path: each for each in author_modules()}
ENTRY = re.compile(r"^::: (\S+)\n((?:    .*\n)*)", re.MULTILINE)
ENTRIES = [path for text in PAGES.values() for path, _ in ENTRY.findall(text)]
WITH_CONSTRUCTOR = [
    path
    for text in PAGES.values()
    for path, options in ENTRY.findall(text)
    if "merge_init_into_class: false" not in options
]
PACKAGES = ("capsmith_runtime", "capsmith_runtime.testing")
SLICES = (
    "addon",
    "admission",
    "bootstrap",
    "controlplane",
    "extension",
    "infrastructure",
    "ipam",
    "remediation",
    "resource",
)
KUBERNETES_METADATA = {
    "annotations",
    "api_version",
    "group",
    "kind",
    "labels",
    "name",
    "namespace",
    "uid",
}
"""Attributes that readers know from Kubernetes: only what is special about them needs words."""


@cache
def _runtime() -> Any:
    return griffe.load(
        "capsmith_runtime", search_paths=[ROOT / "runtime" / "src"], resolve_aliases=True
    )


def _found(path: str) -> Any:
    found = _runtime()[path.removeprefix("capsmith_runtime.")]
    return found.final_target if found.is_alias else found


def _members(cls: Any) -> list[Any]:
    """Return the public members of a class, also inherited ones."""
    members = [member for name, member in cls.all_members.items() if not name.startswith("_")]
    return [member.final_target if member.is_alias else member for member in members]


def _is_described(member: Any) -> bool:
    """Report whether a member, or the one that it overrides, has a docstring."""
    overridden = (base.members.get(member.name) for base in member.parent.mro())
    found = [each for each in (member, *overridden) if each is not None and each.docstring]
    return any(re.search(r"\w{2}", each.docstring.value) for each in found)


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("name", SLICES)
def test_each_public_name_is_on_the_page_of_its_module(package: str, name: str) -> None:
    path = f"{package}.{name}"
    module = MODULES[path]
    page = PAGES[module.page]
    shared = shared_names(list(MODULES.values()))

    assert page.startswith(f"# {path}\n")
    for export in map(str, _found(path).exports):
        entry = module.entries().get(export) or shared[export]
        assert f"::: {entry}\n" in page or f"[`{export}`][{entry}]" in page, export
        assert entry in ENTRIES


def test_names_have_one_entry_each_and_nothing_else_has() -> None:
    exports = {
        str(export)
        for package in PACKAGES
        for name in SLICES
        for export in _found(f"{package}.{name}").exports
    }
    support = {f"{module}.{name}" for module, names in SUPPORT.items() for name in names}

    assert len(set(ENTRIES)) == len(ENTRIES)
    assert {path.rpartition(".")[2] for path in set(ENTRIES) - support} == exports
    assert support <= set(ENTRIES)


@pytest.mark.parametrize("path", ENTRIES)
def test_each_entry_has_a_description(path: str) -> None:
    found = _found(path)

    assert found.docstring is not None
    assert re.search(r"\w+ \w+", found.docstring.value)
    # A function may have the name of its module, which would be described in its place.
    assert found.is_module == (path == "capsmith_runtime.bootstrap.sentinel")
    # What only Sphinx can read.
    assert not re.search(r":\w+:`|::$", found.docstring.value, re.MULTILINE)


@pytest.mark.parametrize("path", [path for path in ENTRIES if path.rpartition(".")[2][0].isupper()])
def test_each_member_of_a_class_has_a_description(path: str) -> None:
    found = _found(path)
    members = _members(found) if found.is_class else []
    missing = [each.path for each in members if not _is_described(each)]

    assert [path for path in missing if path.rpartition(".")[2] not in KUBERNETES_METADATA] == []


@pytest.mark.parametrize("path", WITH_CONSTRUCTOR)
def test_constructors_on_the_pages_have_no_private_parameters(path: str) -> None:
    found = _found(path)
    constructor = found.all_members.get("__init__") if found.is_class else None
    parameters = constructor.parameters if constructor is not None else ()

    assert [each.name for each in parameters if each.name.startswith("_")] == []


def test_the_introduction_links_each_name_to_its_entry() -> None:
    text = link_names((ROOT / "docs" / "author-api.md").read_text(encoding="utf-8"))
    targets = re.findall(r"\[`[^`]*`\]\[(\S+?)\]", text)

    for entry in set(ENTRIES) - {f"{path}.{name}" for path, all in SUPPORT.items() for name in all}:
        assert entry in targets
    assert set(targets) <= set(ENTRIES)
    for module in MODULES.values():
        assert f"[Signatures, types and defaults]({module.page})" in text


def test_the_overview_links_the_generated_pages() -> None:
    text = link_titles((ROOT / "docs" / "reference" / "README.md").read_text(encoding="utf-8"))
    parts = {path for path in (*PAGES, *example_pages()) if not path.endswith("/README.md")}

    for path in generated_pages().keys() - parts:
        assert f"]({path.removeprefix('reference/')})" in text
