"""What the documents of a repository say of its files, its requirements and its conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml

from tests.golden.cases import Case, cases
from tests.golden.expected import is_copy

_PATH = re.compile(
    r"(?<![\w./~-])((?:(?:addon|bootstrap|control-plane|infrastructure|ipam|runtime-extension)/)?"
    r"config/[\w./-]+|(?:src|tests|templates|hack|e2e)/[\w./-]+)"
)
each_case = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)


def _pages(case: Case) -> Iterator[tuple[str, str]]:
    for path in sorted(case.expected.rglob("*.md")):
        yield str(path.relative_to(case.expected)), path.read_text(encoding="utf-8")


@each_case
def test_files_that_documents_name_exist(case: Case) -> None:
    missing = {
        (page, path)
        for page, text in _pages(case)
        for path in (found.rstrip("./") for found in _PATH.findall(text))
        if not is_copy(path) and not (case.expected / path).exists()
    }
    assert missing == set()


@each_case
def test_the_readme_requires_the_kubernetes_that_policies_need(case: Case) -> None:
    """ValidatingAdmissionPolicies and match conditions of webhooks are stable since 1.30."""
    manifests = [*case.expected.glob("**/config/admission/*.yaml")]
    manifests += case.expected.glob("**/config/webhook/manifests.yaml")
    readme = (case.expected / "README.md").read_text(encoding="utf-8")
    assert ("needs Kubernetes v1.30 or later" in readme) == bool(manifests)


@each_case
def test_the_reference_says_when_ready_is_unknown(case: Case) -> None:
    """Of infrastructure that exists: see test_scripted_unknown.py for the behaviour."""
    spec = yaml.safe_load(case.spec.read_text(encoding="utf-8"))
    reference = (case.expected / "docs" / "reference.md").read_text(encoding="utf-8")
    statuses = set(re.findall(r"^\| Ready \| (\w+) \|", reference, re.MULTILINE))
    assert ("Unknown" in statuses) == ("infrastructure" in spec)
