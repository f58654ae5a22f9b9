"""What an overlay may consist of, and which files it may add."""

from __future__ import annotations

from pathlib import Path
from string import Formatter

import pytest
from jinja2 import TemplateSyntaxError

from capsmith import resources
from capsmith.blueprint.overlay import NAMES, Overlay, parse_overlay, read_rows
from capsmith.blueprint.overlay_render import OverlayEnvironment, plan_rows
from capsmith.blueprint.plan import BlueprintEntry, BlueprintScope, plan_entry
from capsmith.commands import build
from capsmith.commands.load import load
from capsmith.findings import Finding, has_errors
from capsmith.output.runtime import Runtime
from capsmith.provider.model import Provider
from capsmith.tree import Owner
from capsmith.workspace.reading import read_texts

RUNTIME = Runtime("vendored", "0.2.0", (), (), {})
EXAMPLES = Path(__file__).parents[3] / "examples"
OWN = {"project/Makefile.jinja": "all:\n", "project/docs/a.md.jinja": "a\n", "macros/m.jinja": "m"}


def overlay(**texts: str) -> tuple[Overlay | None, tuple[Finding, ...]]:
    return parse_overlay(texts, OWN, "over", "over")


def manifest(rows: str, *sources: str) -> tuple[Overlay | None, tuple[Finding, ...]]:
    texts = {f"project/{source}": "x\n" for source in sources or ("mine.jinja",)}
    return overlay(**texts, **{"manifest.yaml": f"files:\n{rows}\n"})


def ids(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(str(each.location), each.id) for each in found]


def test_what_replaces_and_what_is_added() -> None:
    made, found = manifest("- {source: mine.jinja}", "mine.jinja", "Makefile.jinja")
    assert found == ()
    assert made is not None
    (row,) = made.rows
    assert row.entry == BlueprintEntry(
        "mine.jinja", "mine", BlueprintScope.PROVIDER, (), Owner.GENERATED, False
    )
    assert str(row.location) == "over/manifest.yaml:2:3"
    assert set(made.sources) == {"project/mine.jinja", "project/Makefile.jinja"}


def test_all_errors_are_reported_at_once() -> None:
    made, found = overlay(
        **{
            "project/Makefil.jinja": "",
            "project/docs/b.jinja": "",
            "projct/Makefile.jinja": "",
            "manifest.yml": "",
            "macros/m.jinja": "",
            "macros/mine.jinja": "",
        }
    )
    assert made is None
    assert {(each.location.file, each.id, each.hint) for each in found} == {
        ("over/project/Makefil.jinja", "overlay-unused", "Did you mean `project/Makefile.jinja`?"),
        ("over/project/docs/b.jinja", "overlay-unused", "Did you mean `project/docs/a.md.jinja`?"),
        ("over/projct/Makefile.jinja", "overlay-unknown", "Did you mean `project`?"),
        ("over/manifest.yml", "overlay-unknown", "Did you mean `manifest.yaml`?"),
        (
            "over/macros/m.jinja",
            "overlay-macro",
            "Give it another name, and replace the blueprints that must include it.",
        ),
    }
    assert ids(overlay()[1]) == [("over", "overlay-empty")]


@pytest.mark.parametrize(
    ("rows", "place", "id"),
    [
        ("- {source: mine.jinja, targt: x}", "2:24", "overlay-unknown-key"),
        ("- {source: nine.jinja}", "2:12", "overlay-source"),
        ("- {target: x}", "2:3", "overlay-source"),
        ("- {source: mine.jinja, owner: nobody}", "2:31", "overlay-not-one-of"),
        ("- {source: mine.jinja, for_each: thing}", "2:34", "overlay-not-one-of"),
        ("- {source: mine.jinja, when: never}", "2:30", "overlay-not-one-of"),
        ("- {source: mine.jinja, when: [has_ipam, never]}", "2:30", "overlay-not-one-of"),
        ("- {source: mine.jinja, when: {a: b}}", "2:30", "overlay-manifest"),
        ("- {source: mine.jinja, when: [1]}", "2:30", "overlay-manifest"),
        ("- {source: [mine.jinja]}", "2:12", "overlay-manifest"),
        ("- {source: mine.jinja, executable: 3}", "2:36", "overlay-manifest"),
        ("- mine.jinja", "2:3", "overlay-manifest"),
        ("- {source: mine.jinja, target: '{module}.md'}", "2:32", "overlay-target"),
        ("- {source: mine.jinja, target: '{package.__class__}'}", "2:32", "overlay-target"),
        ("- {source: mine.jinja, target: '{package!r}'}", "2:32", "overlay-target"),
        ("- {source: mine.jinja, target: '{package:>999999999}'}", "2:32", "overlay-target"),
        ("- {source: mine.jinja, target: '{0}'}", "2:32", "overlay-target"),
        ("- {source: mine.jinja, target: 'a b'}", "2:32", "overlay-target"),
        ("- {source: mine.jinja, target: 7}", "2:32", "overlay-manifest"),
        ("  none", "2:3", "overlay-manifest"),
    ],
)
def test_findings_on_rows_have_their_positions(rows: str, place: str, id: str) -> None:
    made, found = manifest(rows)
    assert made is None
    assert (f"over/manifest.yaml:{place}", id) in ids(found)
    assert not any(each.id == "overlay-unused" for each in found)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [" + "*c, " * 5000 + "]", "yaml-"),
        ("files: " + "[" * 5000, "yaml-too-deep"),
        ("files: &a [*a]", "yaml-"),
        ("files: !!python/object/apply:os.system ['id']", "yaml-tag"),
        ("files: []\nfiles: []", "yaml-duplicate-key"),
        ("- {source: mine.jinja}", "yaml-not-a-mapping"),
        ("files: [", "yaml-syntax"),
        ("files: [" + "{source: mine.jinja}," * 501 + "]", "overlay-manifest"),
        ("more: []", "overlay-unknown-key"),
    ],
)
def test_a_hostile_manifest_costs_little(text: str, id: str) -> None:
    rows, found = read_rows(text, "over/manifest.yaml", {"mine.jinja"})
    assert rows == ()
    assert any(each.id.startswith(id) for each in found)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("../outside", "bad target"),
        ("/etc/passwd", "bad target"),
        ("a/../../b", "bad target"),
        ("a/./b", "bad target"),
        (".capsmith/lock.yaml", "cannot be generated"),
        (".Capsmith/base/x", "cannot be generated"),
        (".git/hooks/pre-commit", "cannot be generated"),
        ("sub/.git/config", "cannot be generated"),
        ("provider.yaml", "cannot be generated"),
        ("Provider.yaml", "cannot be generated"),
        ("over/project/mine.jinja", "is inside the overlay"),
        ("over", "is inside the overlay"),
        ("vendor/capsmith_runtime/mine.py", "belongs to the runtime library"),
        ("Vendor/capsmith_runtime.json", "belongs to the runtime library"),
        ("vendor/capsmith_runtime", "belongs to the runtime library"),
        ("Vendor", "belongs to the runtime library"),
        ("Makefile", "is already generated"),
        ("makefile", "is already generated"),
        ("Makefile/x", "would be both a file and a folder"),
        ("config", "would be both a file and a folder"),
        ("a" * 300, "bad target"),
    ],
)
def test_where_nothing_may_be_written(target: str, said: str, provider: Provider) -> None:
    made, found = manifest(f"- {{source: mine.jinja, target: {target}}}")
    assert found == ()
    assert made is not None
    own = ["Makefile", "config/crd/a.yaml"]
    _, (finding,) = plan_rows(made, provider, RUNTIME, own)
    assert (finding.id, str(finding.location)) == ("overlay-target", "over/manifest.yaml:2:3")
    assert said in finding.message


def test_rows_do_not_collide_with_each_other(provider: Provider) -> None:
    made, _ = manifest("- {source: mine.jinja, target: a}\n- {source: mine.jinja, target: A/b}")
    assert made is not None
    _, (finding,) = plan_rows(made, provider, RUNTIME, [])
    assert finding.location.line == 3


def test_a_condition_that_needs_more_than_there_is(provider: Provider) -> None:
    made, _ = manifest("- {source: mine.jinja, when: infra_machine}")
    assert made is not None
    _, (finding,) = plan_rows(made, provider, RUNTIME, [])
    assert "requires a resource" in finding.message


@pytest.mark.parametrize("scope", list(NAMES))
def test_a_target_may_use_the_names_of_its_scope(scope: BlueprintScope, provider: Provider) -> None:
    target = "/".join(f"{{{name}}}" for name in NAMES[scope])
    assert {name for _, name, _, _ in Formatter().parse(target)} == set(NAMES[scope])
    files = list(
        plan_entry(
            BlueprintEntry("x", target, scope, (), Owner.GENERATED, False), provider, RUNTIME
        )
    )
    assert files
    assert all(file.path.count("/") >= len(NAMES[scope]) - 1 for file in files)


def test_the_digest_is_of_paths_and_texts_only() -> None:
    texts = {"project/Makefile.jinja": "x\n", "macros/a": "y"}
    digests = set()
    for where, named in (("here", ""), ("there/else", "else")):
        for order in (texts, dict(reversed(texts.items()))):
            made, _ = parse_overlay(order, OWN, where, named)
            assert made is not None
            digests.add(made.digest)
    other, _ = parse_overlay({**texts, "macros/a": "z"}, OWN, "here", "")
    assert len(digests) == 1
    assert other is not None
    assert other.digest not in digests


@pytest.mark.slow
@pytest.mark.parametrize("name", ["complete", "pools", "extension"])
def test_capsmiths_own_blueprints_would_do_as_an_overlay(name: str) -> None:
    """So authors can begin with a copy of any of them."""
    made = load(EXAMPLES / name / "provider.yaml").provider
    assert made is not None
    own = read_texts(resources.blueprints())
    copies = {path: text for path, text in own.items() if path.startswith("project/")}
    whole, found = parse_overlay(copies, own, "over", "")
    assert found == ()
    assert whole is not None
    tree, found = build.build_overlaid(made, whole)
    assert not has_errors(found)
    assert tree == build.build(made)


def test_an_integer_with_too_many_digits_has_a_place() -> None:
    source = "all:\n{{ " + "9" * 100_000 + " }}\n"
    environment = OverlayEnvironment(lambda name: (source, f"over/{name}", None))
    with pytest.raises(TemplateSyntaxError, match="too many digits") as caught:
        environment.get_template("project/Makefile.jinja")
    assert (caught.value.filename, caught.value.lineno) == ("over/project/Makefile.jinja", 2)
