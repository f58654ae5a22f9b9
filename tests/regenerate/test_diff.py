"""``capsmith update --diff``: what it shows, and that it is a patch."""

from __future__ import annotations

import subprocess

from click.testing import CliRunner

from capsmith.cli import main
from tests.regenerate.conftest import Change, Provider, run

MODEL = "src/cluster_api_provider_acme/_generated/api/acme_machine.py"


def test_a_diff_shows_each_change(provider: Provider) -> None:
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    provider.edit("provider.yaml", "credentials: AcmeIdentity\n", "")
    provider.path("tests/test_conformance.py").unlink()
    said = provider.update("--diff")
    diffs = {file["path"]: file["diff"] for file in said.report["files"] if "diff" in file}
    assert set(diffs) == said.files("updated") | said.files("removed") | said.files("created")
    assert "rack" in diffs[MODEL]
    assert all("\n+++ /dev/null\n" in diffs[path] for path in said.files("removed"))
    text = run("update", "--diff", str(provider.folder)).text
    assert f"\n--- a/{MODEL}\n+++ b/{MODEL}\n@@ " in text


def test_a_diff_of_an_edited_generated_file_shows_the_edit(provider: Provider) -> None:
    provider.append(MODEL, "# edited \x1b[31m\n")
    said = run("update", "--check", "--diff", str(provider.folder))
    assert said.code == 1
    assert "\n-# edited \\x1b[31m\n" in said.text


def test_a_diff_is_a_patch(provider: Provider, change_blueprint: Change) -> None:
    for path in ("metadata.yaml", "docs/reference.md"):
        text = provider.path(path).read_bytes()
        provider.path(path).write_bytes(text.replace(b"\n", b"\r\n"))
    change_blueprint("project/Makefile.jinja", "\t$(PYTHON) -m pytest\n", "\t\t$(PYTHON) -m nose\n")
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    provider.edit("provider.yaml", "releases: {", "releases: {v0.2: v1beta2, ")
    output = CliRunner().invoke(main, ["update", "--diff", str(provider.folder)]).stdout_bytes
    patch = output[output.index(b"--- a/") : output.rindex(b"\n", 0, -1) + 1]
    command = ["git", "apply", "--whitespace=nowarn"]
    subprocess.run(command, cwd=provider.folder, input=patch, check=True)
    said = provider.update()
    assert said.code == 0
    assert all(path.startswith(".capsmith/") for path in said.files("updated"))


def test_a_change_of_the_records_alone_is_named(provider: Provider) -> None:
    provider.append("provider.yaml", "# a comment\n")
    said = provider.update("--check")
    assert (said.code, said.files("updated")) == (1, {".capsmith/lock.yaml"})
    (diff,) = (f["diff"] for f in provider.update("--diff").report["files"] if "diff" in f)
    assert "\n-spec: sha256:" in diff
    assert provider.update().files("updated") == {".capsmith/lock.yaml"}
    assert provider.update("--check").code == 0
