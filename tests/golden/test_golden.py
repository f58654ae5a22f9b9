"""What is generated is what is expected, byte for byte, and modes too."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import yaml

from capsmith import __version__
from capsmith.commands.build import SCHEMA_PATH, read_schema
from capsmith.merging.lock import LOCK_PATH
from capsmith.output.runtime import FOLDER, RECORD
from capsmith.tree import digest
from tests.golden.cases import Case, cases, compared, generated
from tests.golden.expected import BASE, ORDER, WHOLE, derive, derive_components, kept_folder
from tests.golden.files import File, difference, read

ROOT = Path(__file__).parents[2]
CASES = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)


@CASES
def test_repository_is_as_expected(case: Case, tmp_path: Path) -> None:
    new = compared(generated(case, tmp_path / "repository"))

    changes = difference(read(case.expected), new)

    assert not changes, f"python -m tests.golden.update {case.name}\n{changes[:20_000]}"


@CASES
def test_copies_are_copies(case: Case, tmp_path: Path) -> None:
    files = generated(case, tmp_path / "repository")
    base = {path.removeprefix(BASE): file for path, file in files.items() if path.startswith(BASE)}

    assert base
    assert {path: file.text for path, file in base.items()} == {
        path: files[path].text for path in base
    }
    assert files["provider.yaml"] == File(case.spec.read_text(encoding="utf-8"), False)
    assert files[SCHEMA_PATH].text == read_schema()


@CASES
def test_the_vendored_runtime_is_a_plain_copy(case: Case, tmp_path: Path) -> None:
    files = generated(case, tmp_path / "repository")
    vendored = {path: file for path, file in files.items() if path.startswith(f"{FOLDER}/")}
    library = ROOT / "runtime/src/capsmith_runtime"

    for path, file in vendored.items():
        text = (library / path.removeprefix(f"{FOLDER}/")).read_text(encoding="utf-8")
        if not path.endswith("/__init__.py"):
            assert file.text == text, path
            continue
        # It exports the names of the modules that are copied, and no others.
        assert _exports(file.text) == {
            name: module
            for name, module in _exports(text).items()
            if not module.startswith("capsmith_runtime/")
            or not {f"vendor/{module}.py", f"vendor/{module}/__init__.py"}.isdisjoint(vendored)
        }, path
        remaining = iter(text.splitlines())
        assert all(line in remaining for line in file.text.splitlines()), path
    if vendored:
        record = json.loads(files[RECORD].text)
        assert record["version"] == __version__
        assert record["files"] == {path: digest(file.text) for path, file in vendored.items()}
    else:
        assert RECORD not in files


def _defined(tree: ast.Module) -> set[str]:
    """Return the names of the functions, classes and annotated constants of a module."""
    return {
        each.name if isinstance(each, ast.FunctionDef | ast.ClassDef) else ast.unparse(each.target)
        for each in tree.body
        if isinstance(each, ast.FunctionDef | ast.ClassDef | ast.AnnAssign)
    }


def _exports(text: str) -> dict[str, str]:
    """Return the names that a module imports or lists as exports, with the path of their module."""
    tree = ast.parse(text)
    found = {
        alias.asname or alias.name: (node.module or "").replace(".", "/")
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            listed = ast.literal_eval(node.value)
            assert set(listed) <= _defined(tree) | set(found)
    return found


def test_no_expected_tree_is_left_over() -> None:
    with_trees = {path.parent.name for path in Path(__file__).parent.glob("*/expected")}

    assert with_trees == {case.name for case in cases()} == set(ORDER)


@pytest.mark.parametrize(
    "case", [each for each in cases() if each.name not in WHOLE], ids=lambda case: case.name
)
def test_a_case_keeps_no_file_that_follows_from_an_earlier_one(case: Case) -> None:
    kept = {path: file for path, file in read(case.kept).items() if path != LOCK_PATH}
    derived = derive(case.name, frozenset(digest(file.text) for file in kept.values()))

    assert [path for path, file in kept.items() if derived.get(digest(file.text)) == file] == []


def test_a_file_is_derived_from_that_of_another_component() -> None:
    """The managers of a repository differ in the names of their components."""
    kept = read(kept_folder("complete"))
    (path,) = (path for path in kept if path.startswith("bootstrap/config/manager/manager"))
    other = "ipam/config/manager/manager.yaml"
    entry = yaml.safe_load(kept[LOCK_PATH].text)["files"][other]

    assert other not in kept
    derived = derive_components("complete", kept[path])[entry["digest"]]
    assert "--component=ipam" in derived.text
    assert (
        derive_components("complete", File(kept[path].text + "#", False))
        .keys()
        .isdisjoint({entry["digest"]})
    )


def test_a_text_is_derived_only_where_names_are_all_that_differs() -> None:
    text = (kept_folder("acme") / "config/default/kustomization.yaml").read_text(encoding="utf-8")
    renamed = text.replace("acme", "homelab")
    key = digest(renamed)

    assert derive("homelab", frozenset([key])) == {key: File(renamed, False)}
    for other in (text, renamed + "\n", renamed.replace("homelab", "other")):
        assert derive("homelab", frozenset([digest(other)])) == {}
