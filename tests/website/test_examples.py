"""The pages of the examples, with the diagrams of their kinds."""

from __future__ import annotations

import hashlib

import yaml

from tests.checkout import ROOT
from website.examples import EXAMPLES, FOLDER, example_pages

GOLDEN = ROOT / "tests" / "golden"
VENDORED = ROOT / "website" / "vendor"


def test_each_example_has_a_page_in_the_navigation() -> None:
    names = {file.parent.name for file in EXAMPLES.glob("*/provider.yaml")}
    pages = example_pages()
    assert set(pages) == {f"{FOLDER}/README.md", *(f"{FOLDER}/{name}.md" for name in names)}
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path, text in pages.items():
        assert f"- {path}\n" in navigation
        assert (
            path.endswith("README.md")
            or f"]({path.rpartition('/')[2]})" in pages[f"{FOLDER}/README.md"]
        )
        assert text.startswith("# ")


def test_the_diagram_is_that_of_the_generated_repository() -> None:
    pages = example_pages()
    references = sorted(GOLDEN.glob("*/expected/docs/reference.md"))
    assert len(references) > 9
    for reference in references:
        name = reference.parents[2].name
        diagram = pages[f"{FOLDER}/{name}.md"].partition("```mermaid\n")[2].partition("```")[0]
        assert f"```mermaid\n{diagram}```" in reference.read_text(encoding="utf-8"), name


def test_a_page_has_the_diagram_as_text_too() -> None:
    page = example_pages()[f"{FOLDER}/acme.md"]
    assert "    AcmeIdentity: spec.identityRef\n" in page


def test_mermaid_is_unchanged_and_comes_with_its_license() -> None:
    records = yaml.safe_load((VENDORED / "vendor.yaml").read_text(encoding="utf-8"))
    assert {path.name for path in VENDORED.glob("*.js")} == {*records}
    for name, record in records.items():
        assert hashlib.sha256((VENDORED / name).read_bytes()).hexdigest() == record["sha256"]
        assert "MIT License" in (VENDORED / record["license_file"]).read_text(encoding="utf-8")
