"""Texts that mean something elsewhere stay texts in every file of a generated repository."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.commands.build import build, check_manifests
from capsmith.commands.load import load_text
from capsmith.findings import has_errors
from capsmith.tree import FileTree

CODE = (
    """1. $(shell id) `id` <script>alert(1)</script> &lt; "q" 'q' \\ \\" \"\"\" ''' ]]> --> """
    """*a* _b_ [c](d) {{ x }} {% y %} {# z #} #1 | % é \\u0041 \\N{DEGREE SIGN}"""
)
VARIABLES = "${{ github.token }} ${HOME} $$ " + CODE
"""Only where clusterctl does not look; elsewhere such text is refused."""
WORDS = ["no", "on", "1e3", "0x1", "~", " lead", "trail ", "a: b", "# c", "\\", "'", "|", "`", "%"]
MANY_LINES = "\"\"\"\n'''\n- a: {{ x }}\n\n  %b\\"


def description() -> dict[str, Any]:
    text = {"type": "string", "description": CODE}
    return {
        "capsmith": 1,
        "name": "acme",
        "repository": "https://github.com/acme/cluster-api-provider-acme",
        "title": VARIABLES,
        "description": VARIABLES,
        "owner": VARIABLES,
        "licence": "MIT",
        "contracts": ["v1beta2"],
        "releases": {"v0.1": "v1beta2"},
        "infrastructure": {
            "AcmeCluster": {
                "implements": "InfraCluster",
                "description": CODE,
                "spec": {"region": {**text, "required": True, "enum": [*WORDS, CODE, MANY_LINES]}},
            },
            "AcmeMachine": {
                "implements": "InfraMachine",
                "description": CODE,
                "spec": {
                    "size": {**text, "required": True, "pattern": "^[a-z\"'`|\\\\]+$"},
                    "lines": {**text, "required": True, "enum": [MANY_LINES]},
                    "note": {
                        **text,
                        "default": CODE,
                        "x-kubernetes-validations": [{"rule": "self != '\"'", "message": CODE}],
                    },
                },
                "validations": [{"rule": "self.size != '`|'", "message": CODE}],
                "printerColumns": [
                    {"name": CODE, "type": "string", "jsonPath": ".spec.size", "description": CODE}
                ],
            },
        },
        "credentials": "AcmeIdentity",
        "dependencies": ["requests>=2; python_version < '4' and platform_system != \"x\""],
        "devDependencies": ["moto>=5; python_version < '4' and platform_system != \"x\""],
    }


@pytest.fixture(scope="module", params=["v1beta1", "v1beta2"])
def tree(request: pytest.FixtureRequest) -> FileTree:
    spec = {**description(), "contracts": [request.param], "releases": {"v0.1": request.param}}
    loaded = load_text(yaml.safe_dump(spec), "provider.yaml")
    assert loaded.provider is not None, loaded.findings
    made = build(loaded.provider)
    assert not has_errors(check_manifests(made, loaded.provider))
    return made


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for each in pair for text in strings(each))
    elif isinstance(value, list):
        yield from (text for item in value for text in strings(item))


def documents(tree: FileTree, path: str) -> list[Any]:
    # A variable of clusterctl can stand for a number.
    return list(yaml.safe_load_all(re.sub(r"(?m): \$\{\w+\}$", ": 1", tree[path].text)))


def test_python_parses_and_has_no_code_of_the_user(tree: FileTree) -> None:
    for file in tree:
        if file.path.endswith(".py"):
            names = {node.id for node in ast.walk(ast.parse(file.text)) if type(node) is ast.Name}
            assert not names & {"shell", "alert", "github", "HOME"}, file.path
    (model,) = (file.text for file in tree if file.path.endswith("api/acme_machine.py"))
    assert CODE in {node.value for node in ast.walk(ast.parse(model)) if type(node) is ast.Constant}


def test_manifests_contain_the_texts(tree: FileTree) -> None:
    (path,) = (p for p in tree.files if p.endswith("_acmemachines.yaml"))
    (crd,) = documents(tree, path)
    (version,) = crd["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    note = spec["properties"]["note"]
    assert note["default"] == note["description"] == CODE
    assert [rule["message"] for rule in note["x-kubernetes-validations"]] == [CODE]
    assert CODE in [rule["message"] for rule in spec["x-kubernetes-validations"]]
    assert spec["properties"]["lines"]["enum"] == [MANY_LINES]
    column = next(c for c in version["additionalPrinterColumns"] if c["name"] == CODE)
    assert column["description"] == CODE


def test_templates_escape_what_clusterctl_reads(tree: FileTree) -> None:
    seen = set()
    for path in tree.files:
        if path.startswith("templates/"):
            seen |= {text.replace("$$", "$") for text in strings(documents(tree, path))}
    assert {MANY_LINES, CODE, *WORDS} <= seen


def test_project_files_contain_the_texts(tree: FileTree) -> None:
    project = tomllib.loads(tree["pyproject.toml"].text)["project"]
    assert project["description"] == VARIABLES
    assert description()["dependencies"][0] in project["dependencies"]
    assert description()["devDependencies"][0] in project["optional-dependencies"]["dev"]
    assert VARIABLES in tree["LICENSE"].text
    for path, file in tree.files.items():
        if path.endswith(".json"):
            json.loads(file.text)


def test_no_text_of_the_user_is_in_files_that_run(tree: FileTree) -> None:
    for path, file in tree.files.items():
        if path in ("Makefile", "Dockerfile") or path.startswith(".github/"):
            assert "shell id" not in file.text
            assert "`id`" not in file.text
    expressions = {
        expression
        for path, file in tree.files.items()
        if path.startswith(".github/")
        for expression in re.findall(r"\$\{\{(.*?)\}\}", file.text)
    }
    assert not any(re.search(r"event\.|head_ref|title|body", e) for e in expressions)


def test_markdown_opens_no_html_and_stays_in_its_cells(tree: FileTree) -> None:
    for path in ("README.md", "docs/reference.md"):
        prose = re.sub(r"`[^`\n]*`", "", tree[path].text)
        assert "<script" not in prose
    for line in tree["docs/reference.md"].text.splitlines():
        if line.startswith("| `spec."):
            assert len(re.findall(r"(?<!\\)\|", line)) == 6, line


def test_style_and_types_hold(tree: FileTree, tmp_path: Path) -> None:
    check_style(tree, tmp_path)


def test_style_holds_for_the_longest_package(tmp_path: Path) -> None:
    """Imports of such a package fit into no line, and ``make lint`` must accept them."""
    parts = description()
    kinds = {
        f"{'Acme' * 4}{each}": {"implements": f"Infra{each}"} for each in ("Cluster", "Machine")
    }
    parts = {key: parts[key] for key in ("capsmith", "name", "repository", "contracts", "releases")}
    parts |= {"package": "p" * 100, "infrastructure": kinds}
    loaded = load_text(json.dumps(parts), "provider.yaml")
    assert loaded.provider is not None, loaded.findings
    check_style(build(loaded.provider), tmp_path)


def check_style(tree: FileTree, folder: Path) -> None:
    """Write the files of a repository and run the tools of ``make lint`` on them."""
    for file in tree:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.text)
    for command in (["ruff", "check", "--no-cache", "."], ["black", "--check", "--quiet", "."]):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
