"""A reader of a blueprint finds the function of a filter by the comment above its entry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.blueprint import provider_filters
from capsmith.blueprint.filters import FILTERS
from capsmith.blueprint.provider_filters import PROVIDER_FILTERS, has_role
from capsmith.commands.load import load

SOURCE = Path(provider_filters.__file__)
GENERATOR = SOURCE.parents[1]
EXAMPLES = Path(__file__).parents[3] / "examples"


def sections() -> Iterator[tuple[str, str]]:
    """Yield the comment above each filter, and the filter's name."""
    text = SOURCE.read_text(encoding="utf-8").partition("\nPROVIDER_FILTERS: ")[2]
    comment = ""
    for line in text.splitlines():
        if found := re.match(r"    # (.*)", line):
            comment = found[1]
        elif found := re.match(r'    "(\w+)": ', line):
            yield comment, found[1]


@pytest.mark.parametrize(("comment", "name"), list(sections()))
def test_the_comment_names_the_module(comment: str, name: str) -> None:
    module = PROVIDER_FILTERS[name].__module__
    if module == provider_filters.__name__:  # a function here, or one that adapts another
        return
    paths = re.findall(r"[\w/]+(?:\.py|/)", comment)
    assert all((GENERATOR / path).exists() for path in paths)
    file = module.removeprefix("capsmith.").replace(".", "/")
    assert f"{file}.py" in paths or f"{file}/".startswith(
        tuple(path for path in paths if path.endswith("/"))
    )


def test_every_filter_has_a_section_and_one_meaning() -> None:
    assert [name for _, name in sections()] == list(PROVIDER_FILTERS)
    assert not PROVIDER_FILTERS.keys() & FILTERS.keys()


def test_a_role_that_does_not_exist_is_an_error() -> None:
    acme = load(EXAMPLES / "acme/provider.yaml").provider
    assert acme is not None
    assert has_role(acme, "InfraMachine")
    assert not has_role(acme, "InfraMachinePool")
    with pytest.raises(ValueError, match="InfraMashine"):
        has_role(acme, "InfraMashine")
