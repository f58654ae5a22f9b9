"""What is gathered, and which errors are reported, on small trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from capsmith.contract.model import Rule
from tests.traceability.catalogue import ROOT, catalogue
from tests.traceability.claims import Claims, read_claims
from tests.traceability.proofs import Evidence
from tests.traceability.reasons import read_reasons
from tests.traceability.roots import SourceRoot
from tests.traceability.table import Row, missing, table

PLAIN = '''\
def test_one() -> None:
    """What it does.

    Proves: IC-05, SM-01.
    """


class TestMore:
    async def test_two(
        self, a: tuple[int, str] = (1, "x")
    ) -> None:
        """Proves: CC-22."""
'''
BLUEPRINT = '''\
{% if machines %}
def test_three(play: Play) -> None:
    """Another.

    Proves: {{ "" }}
    Proves: MV-08.
    """
{% endif %}
'''


def claims_of(folder: Path, file: str, text: str) -> Claims:
    for needed in ("tests", "blueprints/project/tests"):
        (folder / needed).mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)
    return read_claims(folder)


def test_claims_of_tests(tmp_path: Path) -> None:
    read = claims_of(tmp_path, "tests/test_a.py", PLAIN)
    assert read.mistakes == ()
    assert [(c.rule, str(c.place), c.test) for c in read.claims] == [
        ("CC-22", "tests/test_a.py:12", "TestMore::test_two"),
        ("IC-05", "tests/test_a.py:4", "test_one"),
        ("SM-01", "tests/test_a.py:4", "test_one"),
    ]


def test_claims_of_blueprints(tmp_path: Path) -> None:
    read = claims_of(tmp_path, "blueprints/project/tests/test_a.py.jinja", BLUEPRINT)
    assert [(c.rule, c.test) for c in read.claims] == [("MV-08", "test_three")]
    assert len(read.mistakes) == 1
    assert "test_a.py.jinja:5: it has to read" in read.mistakes[0]


@pytest.mark.parametrize(
    "text",
    [
        'def helper() -> None:\n    """Proves: IC-05."""\n',
        "def test_a() -> None:\n    # Proves: IC-05.\n    pass\n",
        'def test_a() -> None:\n    """This Proves: IC-05."""\n',
        '"""A module.\n\nProves: IC-05.\n"""\n',
    ],
)
def test_claims_outside_of_docstrings_of_tests(tmp_path: Path, text: str) -> None:
    read = claims_of(tmp_path, "tests/test_a.py", text)
    assert read.claims == ()
    assert len(read.mistakes) == 1
    assert "belongs on a line of a test's docstring" in read.mistakes[0]


@pytest.mark.parametrize("ids", ["IC-05", "IC-05 and SM-01.", "IC-5.", "IC-05,SM-01.", "all."])
def test_claims_that_cannot_be_read(tmp_path: Path, ids: str) -> None:
    text = f'def test_a() -> None:\n    """Proves: {ids}"""\n'
    read = claims_of(tmp_path, "tests/test_a.py", text)
    assert read.claims == ()
    assert len(read.mistakes) == 1


@pytest.fixture(scope="module")
def rules() -> Mapping[str, Rule]:
    return {id: each.rule for id, each in catalogue().items()}


def mistakes(
    folder: Path,
    rules: Mapping[str, Rule],
    reasons: str,
    awaited: str = "[]",
    proven: frozenset[str] = frozenset(),
) -> list[str]:
    (folder / "unproven.yaml").write_text(reasons)
    (folder / "awaited.yaml").write_text(awaited)
    return read_reasons(folder).mistakes(rules, proven)


@pytest.mark.parametrize(
    ("reasons", "awaited", "told"),
    [
        ("- {reason: x, rules: [IC-99]}", "[]", "unproven.yaml: IC-99 is no rule"),
        ("- {reason: x, rules: [IC-05]}", "[]", "unproven.yaml: IC-05 has a reason, but is pro"),
        ("- {reason: x, rules: [CP-33, CP-33]}", "[CP-33]", "awaited.yaml: CP-33 has a reason al"),
        ("- {reason: x, rules: [CP-33]}", "[CP-99]", "awaited.yaml: CP-99 is no rule"),
        (
            "- {reason: x, rules: [CP-33]}\n- {reason: y, rules: [CP-33]}",
            "[]",
            "unproven.yaml: CP-33 has several reasons",
        ),
    ],
)
def test_mistaken_reasons(
    tmp_path: Path, rules: Mapping[str, Rule], reasons: str, awaited: str, told: str
) -> None:
    (said,) = mistakes(tmp_path, rules, reasons, awaited, frozenset({"IC-05"}))
    assert said.startswith(told)


def test_reasons_that_fit(tmp_path: Path, rules: Mapping[str, Rule]) -> None:
    reasons = "- {reason: x, rules: [CP-33]}\n- {reason: y, level: INFO}"
    assert mistakes(tmp_path, rules, reasons, "[CP-31]") == []


def test_a_reason_for_a_level_that_is_proven(tmp_path: Path, rules: Mapping[str, Rule]) -> None:
    (said,) = mistakes(tmp_path, rules, "- {reason: y, level: INFO}", proven=frozenset(rules))
    assert said == "unproven.yaml: no INFO rule needs a reason"


@pytest.mark.parametrize("entry", ["{reason: x}", "{rules: [IC-05]}", "{reason: x, rule: IC-05}"])
def test_reasons_of_another_form(tmp_path: Path, entry: str) -> None:
    (tmp_path / "unproven.yaml").write_text(f"- {entry}")
    with pytest.raises(AssertionError):
        read_reasons(tmp_path)


def test_a_rule_with_neither_proof_nor_reason_is_reported(rules: Mapping[str, Rule]) -> None:
    place = catalogue()["CP-33"].place
    row = Row(rules["CP-33"], place, (), Evidence(), None, awaited=False)
    assert missing((row,)) == [
        f"{place}: CP-33 (In-place updates) has neither a proof nor a reason"
    ]


def test_a_check_that_meets_nothing_generated_proves_nothing() -> None:
    assert not Evidence(cases=("BC-01",)).complete
    assert Evidence(cases=("BC-01",), repositories=("acme",)).complete


def test_a_claim_of_an_unknown_rule_is_reported(tmp_path: Path) -> None:
    for name in ("schemas", "blueprints", "generator"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "tests").mkdir()
    for name in ("rules", "invalid"):
        (tmp_path / "tests" / name).symlink_to(ROOT / "tests" / name)
    (tmp_path / "tests" / "test_a.py").write_text(
        'def test_a() -> None:\n    """Proves: IC-99."""\n'
    )
    made = table(tmp_path)
    assert "tests/test_a.py:2: test_a says to prove IC-99, which is no rule" in made.mistakes
    assert any("has neither a proof nor a reason" in mistake for mistake in made.mistakes)


def test_files_of_a_source_root(tmp_path: Path) -> None:
    source_root = SourceRoot("lib", excluded=("/testing/",), copied_to="vendor/lib")
    assert list(source_root.files(tmp_path)) == []
    for name in ("b.py", "a.py", "a.md", "testing/c.py"):
        (tmp_path / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lib" / name).touch()
    found = [file.relative_to(tmp_path).as_posix() for file in source_root.files(tmp_path)]
    assert found == ["lib/a.py", "lib/b.py"]
    assert source_root.copies("lib/a.py") == ("vendor/lib/a.py",)
    assert SourceRoot("lib").copies("lib/a.py") == ()
