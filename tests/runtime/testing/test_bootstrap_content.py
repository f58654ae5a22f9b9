"""Mistakes in the content of bootstrap data."""

from __future__ import annotations

import gzip

import pytest

from capsmith_runtime.testing.bootstrap.content import find_mistakes


@pytest.mark.parametrize(
    "data",
    [
        b"#cloud-config\nruncmd: [a]\n",
        b"#cloud-config \nwrite_files: [{content: '{{ .Name }} ${HOME}'}]\n",
        b"## template: jinja\n#cloud-config\n{% if x %}\nhostname: {{ ds.meta_data.name }}\n",
        b"#!/bin/sh\necho {{ v1.name }}\n",
        b"Content-Type: multipart/mixed; boundary=x\n\n--x--\n",
        b"MIME-Version: 1.0\n",
        gzip.compress(b"anything"),
    ],
)
def test_what_cloud_init_runs_is_accepted(data: bytes) -> None:
    assert find_mistakes(data, "cloud-config") == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"runcmd: [a]\n", "cloud-init ignores them: the first line is 'runcmd: [a]'"),
        (b"b'#cloud-config\\nruncmd: [a]\\n'", "cloud-init ignores them"),
        (b"\n#cloud-config\n", "cloud-init ignores them"),
        (b"#cloud-config\nruncmd: [a\n", "they are not YAML"),
        (b"#cloud-config\n- a\n", "they are not a mapping"),
        (b"#cloud-config\n", "they are not a mapping"),
        (b"#cloud-config\na: 1\nb: 2\na: 3\n", "only the last of these keys counts: a"),
        (b"#cloud-config\nhostname: '{{ ds.meta_data.name }}'\n", "`{{ ds ...` stays as it is"),
        (
            b"#cloud-config\na: <app.Token object at 0x7f12aa00>\n",
            "they have the object <app",
        ),
        (b"#cloud-config\na: \xff\n", "they are not UTF-8"),
    ],
)
def test_what_cloud_init_cannot_run_is_found(data: bytes, message: str) -> None:
    found = find_mistakes(data, "cloud-config")
    assert len(found) == 1
    assert message in found[0]


def test_ignition_is_json_with_a_version() -> None:
    assert find_mistakes(b'{"ignition": {"version": "3.4.0"}}', "ignition") == []
    assert "not JSON" in find_mistakes(b"variant: fcos\n", "ignition")[0]
    for wrong in (b"{}", b"[]", b'{"ignition": {"version": 3}}'):
        assert "ignition.version" in find_mistakes(wrong, "ignition")[0]


def test_other_formats_are_not_judged() -> None:
    assert find_mistakes(b"anything", "talos") == []
