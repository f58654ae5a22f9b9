"""The rule tables on the contract's pages (``schemas/contracts/common/pages.yaml``)."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources.abc import Traversable
from typing import NamedTuple

from capsmith.contract.model import Rule
from capsmith.contract.reading import load, make_error, validate


class PageRow(NamedTuple):
    """A row in the rule table at the beginning of a contract page."""

    name: str
    """The row's name, such as ``conditions``. Rules refer to it in the field ``row``."""
    title: str
    """The row's text, without markup."""
    mandatory: bool
    when: str
    """Condition that makes an optional row mandatory; empty if there is none."""
    see: str
    """Name of the page that contains the row's rules; empty if they are on this page."""


class ContractPage(NamedTuple):
    """A contract page in the Cluster API book, which describes one resource."""

    name: str
    """Name of the page, as in its URL, such as ``infra-machine``."""
    role: str
    rows: tuple[PageRow, ...]

    def rules_of(self, row: PageRow, rules: Iterable[Rule]) -> list[Rule]:
        """Return a row's rules, from this page and from pages that apply to all resources."""
        roles = {self.role, f"{self.role}Template"}
        if row.see:
            return [rule for rule in rules if f"/contracts/{row.see}#" in rule.source]
        return [
            rule
            for rule in rules
            if rule.row == row.name
            and (self._is_source_of(rule) or roles & set(rule.applies_to) or _is_shared(rule))
        ]

    def _is_source_of(self, rule: Rule) -> bool:
        return f"/contracts/{self.name}#" in rule.source


def load_pages(reader: Traversable) -> tuple[ContractPage, ...]:
    """Load the pages about resources from the schemas folder ``reader``.

    Raises UnreadableInput for invalid data.
    """
    from capsmith.contract.files import PagesFile  # builds pydantic models

    file = reader / "contracts" / "common" / "pages.yaml"
    content = validate(PagesFile, load(file), str(file))
    pages = tuple(
        ContractPage(
            entry.page,
            entry.role,
            tuple(PageRow(r.row, r.title, r.mandatory, r.when, r.see) for r in entry.rows),
        )
        for entry in content.pages
    )
    for page in pages:
        if len({row.name for row in page.rows}) < len(page.rows):
            raise make_error(str(file), f"{page.name} has a duplicate row")
    return pages


_SHARED = {"lifecycle", "conditions", "manager", "clusterctl", "secrets"}
"""Rules files whose rules apply to all resources although they do not list roles."""


def _is_shared(rule: Rule) -> bool:
    return rule.page in _SHARED
