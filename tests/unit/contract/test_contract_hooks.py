"""Hooks of the runtime SDK: the data, and what the rest of capsmith knows of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import pytest

from capsmith import resources
from capsmith.contract.load import list_versions, load_contract, load_hooks
from capsmith.contract.model import HookDefinition, HookFamily
from capsmith.errors import UnreadableInput
from capsmith.provider_yaml.model import HookName as HookName

REAL = Path(str(resources.schemas()))
TEXT = """\
source: https://example.com
hooks:
  - {hook: GeneratePatches, family: topology, statement: Change templates.}
  - {hook: UpdateMachine, family: in-place, since: v1.12, statement: Change a machine.}
"""


def test_every_hook_can_be_named_in_provider_yaml() -> None:
    """Proves: RX-05."""
    assert set(load_hooks(resources.schemas())) == set(get_args(HookName))


def test_hooks_are_the_same_for_all_contracts() -> None:
    first, second = (
        dict(load_contract(version, resources.schemas()).hooks) for version in list_versions()
    )
    assert first == second


def loaded(folder: Path, text: str) -> dict[str, HookDefinition]:
    target = folder / "contracts" / "common"
    target.mkdir(parents=True)
    (target / "hooks.yaml").write_text(text)
    return load_hooks(folder)


def test_hooks_are_read(tmp_path: Path) -> None:
    assert loaded(tmp_path, TEXT) == {
        "GeneratePatches": HookDefinition(
            "GeneratePatches", HookFamily.TOPOLOGY, "Change templates.", ""
        ),
        "UpdateMachine": HookDefinition(
            "UpdateMachine", HookFamily.IN_PLACE, "Change a machine.", "v1.12"
        ),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("topology", "nowhere"), "GeneratePatches.family is 'nowhere'"),
        (("hook: UpdateMachine", "hook: GeneratePatches"), "duplicate hook"),
        (("since", "until"), "UpdateMachine has unknown keys until"),
        (("statement: Change templates.", "statement: [1]"), r"GeneratePatches.statement is \[1\]"),
        (("source: https://example.com", "hello: 1"), "source is missing"),
    ],
)
def test_broken_data_are_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in TEXT
    with pytest.raises(UnreadableInput, match=message):
        loaded(tmp_path, TEXT.replace(*change))


def test_missing_data_are_refused(tmp_path: Path) -> None:
    shutil.copytree(REAL, tmp_path / "schemas")
    (tmp_path / "schemas/contracts/common/hooks.yaml").unlink()
    contract = load_contract("v1beta2", tmp_path / "schemas")
    with pytest.raises(UnreadableInput, match="cannot be read"):
        dict(contract.hooks)
