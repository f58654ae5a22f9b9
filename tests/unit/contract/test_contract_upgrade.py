"""The upgrade data against the shapes of both contracts: nothing is missing, nothing invented."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith import resources
from capsmith.contract.load import list_versions, load_contract
from capsmith.contract.model import ChangeKind, FieldChange, FieldConversion, TypeShape, Where
from capsmith.contract.upgrades import load_upgrade
from capsmith.errors import UnreadableInput

OLD, NEW = (load_contract(version, resources.schemas()) for version in list_versions())
UPGRADE = load_upgrade(resources.schemas(), OLD.version, NEW.version)
FILE = "upgrades/v1beta1-to-v1beta2.yaml"
IN_CONTRACT = [
    (role, change)
    for change in UPGRADE.changes
    if change.where is Where.OBJECT and not change.habit
    for role in change.roles
]


def leaves(shape: TypeShape) -> dict[str, dict[str, Any]]:
    """Return every path of a shape with its schema, without descriptions."""
    found: dict[str, dict[str, Any]] = {}
    for part, fields in (("spec", shape.spec), ("status", shape.status)):
        for name, field in fields.items():
            found |= dict(walk(dict(field.schema), f"{part}.{name}"))
    return found


def walk(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    own = {key: value for key, value in schema.items() if key not in {"description", "properties"}}
    own.pop("required", None)
    yield path, own
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, f"{path}.{name}")


def below(path: str, tops: set[str]) -> bool:
    return any(path == top or path.startswith(f"{top}.") for top in tops)


def parents(paths: set[str]) -> set[str]:
    return {path[: at.start()] for path in paths for at in re.finditer(r"\.", path)}


@pytest.mark.parametrize("role", OLD.types)
def test_every_difference_of_the_shapes_is_on_record(role: str) -> None:
    old, new = leaves(OLD.types[role]), leaves(NEW.types[role])
    changes = UPGRADE.of(role)
    gone, come = {c.old for c in changes if c.old}, {c.new for c in changes if c.new}
    differ = {path for path in old.keys() & new.keys() if old[path] != new[path]}
    assert {p for p in old.keys() - new.keys() if not below(p, gone)} == set()
    assert {p for p in new.keys() - old.keys() if not below(p, come)} - parents(come) == set()
    assert {p for p in differ if not below(p, gone & come)} == set()


@pytest.mark.parametrize(
    ("role", "change"), IN_CONTRACT, ids=[f"{r}-{c.old or c.new}" for r, c in IN_CONTRACT]
)
def test_paths_are_those_of_the_shapes(role: str, change: FieldChange) -> None:
    old, new = leaves(OLD.types[role]), leaves(NEW.types[role])
    assert not change.old or change.old in old
    assert not change.new or change.new in new
    moved = change.kind in {ChangeKind.MOVED, ChangeKind.REMOVED}
    # A kind may keep status.ready, as a feature.
    if moved and change.old not in {"spec.failureDomain", "status.ready"}:
        assert change.old not in new
    if change.kind is ChangeKind.COPIED:
        assert change.old in new


def test_rules_exist_and_notes_are_sentences() -> None:
    rules = set(OLD.rules) | set(NEW.rules)
    for change in UPGRADE.changes:
        assert set(change.rules) <= rules
        assert change.who
        assert change.note.endswith(".")
        if change.kind in {ChangeKind.ADDED, ChangeKind.REMOVED} and change.roles:
            assert change.conversion is FieldConversion.NONE
            assert not change.lossless


def test_core_is_upgraded_in_steps_that_clusterctl_takes() -> None:
    """Compare clusterctl's upgrader.go: it refuses more than three minor releases from v1.10 on."""
    assert UPGRADE.core_steps.path == ("v1.10", "v1.13", "v1.16")


def test_an_upgrade_without_data() -> None:
    with pytest.raises(ValueError, match="v1beta2 to v1beta1"):
        load_upgrade(resources.schemas(), "v1beta2", "v1beta1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(to="v1"), "name"),
        (lambda d: d.update(more=1), "more"),
        (lambda d: d["changes"][2].update(idea=1), "idea"),
        (lambda d: d["changes"][2].update(kind="lost"), "lost"),
        (lambda d: d["changes"][2].update(who=["nobody"]), "nobody"),
        (lambda d: d["changes"][2].update(conversion="magic"), "magic"),
        (lambda d: d["changes"][2].pop("new"), "paths"),
        (lambda d: d["changes"][2].pop("roles"), "does not name a role"),
        (lambda d: d["changes"][2].update(kind="narrowed"), "changes its path"),
        (lambda d: d["changes"][2].update(path="spec.a"), "new, old|old, new"),
    ],
)
def test_broken_data_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    shutil.copytree(Path(str(resources.schemas())) / "upgrades", tmp_path / "upgrades")
    file = tmp_path / FILE
    data = yaml.safe_load(file.read_text())
    change(data)
    file.write_text(yaml.safe_dump(data))
    with pytest.raises(UnreadableInput, match=message):
        load_upgrade(tmp_path, "v1beta1", "v1beta2")
