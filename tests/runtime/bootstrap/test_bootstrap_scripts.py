"""Scripts that write the sentinel, run by a shell, and cloud-configs, read by a YAML parser."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from capsmith_runtime.bootstrap import sentinel
from capsmith_runtime.bootstrap.cloud_config import cloud_config, write_file

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
DOCUMENTS = st.dictionaries(
    TEXT,
    st.recursive(
        TEXT | st.booleans() | st.integers(-(2**31), 2**31),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
        max_leaves=12,
    ),
    min_size=1,
    max_size=4,
)


def _run(script: str, folder: Path) -> int:
    process = subprocess.run(
        ["/bin/sh", "-c", script], cwd=folder, capture_output=True, timeout=300
    )
    return process.returncode


def test_the_sentinel_is_written_after_all_commands_succeeded(tmp_path: Path) -> None:
    """Proves: BC-13."""
    file = tmp_path / "run it" / "success.complete"
    script = sentinel.shell_script("echo 1 > a", "echo 2 > b", sentinel=str(file))

    assert _run(script, tmp_path) == 0
    assert file.read_text() == "success\n"
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert (tmp_path / "b").read_text() == "2\n"


@pytest.mark.parametrize("failing", ["false", "exit 3", "no-such-program-anywhere", "cd /no/such"])
def test_a_failure_leaves_no_sentinel(tmp_path: Path, failing: str) -> None:
    """Proves: BC-13."""
    file = tmp_path / "sentinel"
    script = sentinel.shell_script(failing, "echo 2 > b", sentinel=str(file))

    assert _run(script, tmp_path) != 0
    assert not file.exists()
    assert not (tmp_path / "b").exists()


def test_default_paths() -> None:
    """Proves: BC-13."""
    shell, option, script = sentinel.run_command("true")
    assert (shell, option) == ("/bin/sh", "-c")
    assert "/run/cluster-api/bootstrap-success.complete" in script
    windows = sentinel.powershell_script("Join-Node -Quick")
    assert r"'C:\run\cluster-api\bootstrap-success.complete'" in windows


def test_powershell_stops_at_a_failed_program() -> None:
    """PowerShell is not available here, so the test compares the lines.

    Proves: BC-13.
    """
    script = sentinel.powershell_script("first.exe", "second.exe", sentinel=r"C:\it's\s")
    lines = script.split("\r\n")

    guard = "if ($global:LASTEXITCODE -ne 0) { exit $global:LASTEXITCODE }"
    assert lines == [
        "$ErrorActionPreference = 'Stop'",
        "$global:LASTEXITCODE = 0",
        "first.exe",
        guard,
        "$global:LASTEXITCODE = 0",
        "second.exe",
        guard,
        r"New-Item -ItemType Directory -Force -Path 'C:\it''s' | Out-Null",
        r"Set-Content -Path 'C:\it''s\s' -Value 'success'",
        "",
    ]


@given(DOCUMENTS)
def test_a_yaml_parser_reads_the_same_document(document: dict[str, Any]) -> None:
    text = cloud_config(document)

    assert text.startswith(b"#cloud-config\n")
    assert yaml.safe_load(text) == document


def test_strings_stay_strings() -> None:
    document = {"a": ["no", "1", "2030-01-01", "", "~", "- x", "a: b", "é\u0085\u2028\U0001f600"]}
    assert yaml.safe_load(cloud_config(document)) == document


def test_a_file_keeps_its_mode_and_lines() -> None:
    document = {"write_files": [write_file("/etc/a", "1\n\n 2\n", "0600")]}
    (file,) = yaml.safe_load(cloud_config(document))["write_files"]

    assert file == {
        "path": "/etc/a",
        "owner": "root:root",
        "permissions": "0600",
        "content": "1\n\n 2\n",
    }


@pytest.mark.parametrize("value", [None, 1.5, b"x", object()])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="a cloud-config cannot contain"):
        cloud_config({"a": [value]})
