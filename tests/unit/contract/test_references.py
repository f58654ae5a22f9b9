"""The table of references from kinds of Cluster API to kinds of providers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from capsmith import resources
from capsmith.contract.references import FILE, load_references
from capsmith.errors import UnreadableInput
from capsmith.provider.model import Role
from tests.checkout import ROOT


def test_every_role_with_objects_of_core_is_named() -> None:
    named = {reference.role for reference in load_references(resources.schemas())}
    assert named == set(Role) - {Role.ADDON, Role.RESOURCE, Role.IDENTITY}


def test_a_row_needs_a_field_or_an_owner(tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "schemas", tmp_path / "schemas")
    rows = "references:\n- {from: Cluster, role: InfraCluster}\n"
    (folder / "contracts" / "common" / FILE).write_text(rows)
    with pytest.raises(UnreadableInput, match="neither field nor owner"):
        load_references(folder)
