"""``capsmith new`` and ``cookiecutter <this repository>``: the same questions, the same bytes."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cookiecutter.main import cookiecutter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capsmith.errors import UnreadableInput
from capsmith.provider_yaml.model import ProviderSpec
from capsmith.provider_yaml.parse import parse
from capsmith.scaffold import TEMPLATE, Proposal, ScaffoldOptions, propose_spec

ROOT = Path(__file__).parents[3]
TEMPLATE_FOLDER = ROOT / "generator" / "capsmith" / "scaffold" / TEMPLATE
ANSWERS = {
    "name": "home-lab",
    "github_username": "someone",
    "repository": "https://git.example.org/someone/home-lab",
    "cluster_kind": "RackCluster",
    "machine_kind": "RackMachine",
    "contract": "v1beta1",
    "api_group": "infrastructure.example.org",
    "credentials": "no",
    "licence": "MIT",
    "sdk": "acme_sdk.compute",
    "sdk_requirement": "acme-sdk[aio]>=2,<3",
    "full_name": 'Zoë "Z" O\'Neill & Töchter: #1 \\ 日本 😀',
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a user configuration that keeps replays out of the home folder."""
    path = tmp_path / "cookiecutterrc"
    path.write_text(f"replay_dir: {tmp_path / 'replay'}\n", encoding="utf-8")
    return path


def _new(config: Path, **overrides: str | bool) -> Proposal:
    return propose_spec(ScaffoldOptions(no_input=True, config_file=config, overrides=overrides))


def _cookiecutter(config: Path, folder: Path, template: Path = ROOT, **arguments: Any) -> bytes:
    made = cookiecutter(
        str(template),
        output_dir=str(folder),
        config_file=str(config),
        accept_hooks=False,
        **arguments,
    )
    return (Path(made) / "provider.yaml").read_bytes()


def _typed(monkeypatch: pytest.MonkeyPatch, answers: list[str]) -> None:
    lines = iter(answers)
    monkeypatch.setattr("builtins.input", lambda *prompt: next(lines))


@pytest.mark.parametrize("answers", [{}, {"name": "acme-two"}, ANSWERS], ids=["none", "one", "all"])
def test_same_bytes_both_ways(answers: dict[str, str], config: Path, tmp_path: Path) -> None:
    proposal = _new(config, **answers)

    made = _cookiecutter(config, tmp_path / "made", no_input=True, extra_context=answers)

    assert made == proposal.text.encode()
    assert (tmp_path / "made" / proposal.folder / "provider.yaml").is_file()


def test_same_bytes_from_a_zip(config: Path, tmp_path: Path) -> None:
    archive = tmp_path / "capsmith.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.mkdir("capsmith")
        file.write(ROOT / "cookiecutter.json", "capsmith/cookiecutter.json")
        for path in sorted(TEMPLATE_FOLDER.rglob("*")):
            file.write(path, f"capsmith/{path.relative_to(ROOT).as_posix()}")

    made = _cookiecutter(config, tmp_path / "made", archive, no_input=True)

    assert made == _new(config).text.encode()


def test_same_bytes_when_typed(
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    owner = "{{ 6 * 7 }}: # 'x'"
    typed = ["home-lab", "", "", "", "RackMachine", "2", "", "n", "3", owner, "y", "", "y"]
    typed += ["google.cloud.compute_v1", "", "y"]
    _typed(monkeypatch, typed)
    proposal = propose_spec(ScaffoldOptions(config_file=config))
    _typed(monkeypatch, ["1", *typed])  # cookiecutter prompts for the type of provider first

    made = _cookiecutter(config, tmp_path / "made")

    assert made == proposal.text.encode()
    assert proposal.answers["cluster_kind"] == "HomeLabCluster"
    spec = yaml.safe_load(made)
    assert spec["owner"] == owner
    assert spec["bootstrap"] == {"HomeLabConfig": {"implements": "BootstrapConfig"}}
    assert "controlPlane" not in spec
    assert spec["sdk"] == "google.cloud.compute_v1"
    assert spec["dependencies"] == ["google-cloud-compute-v1"]
    assert spec["e2e"] is True
    assert "Name of the provider" in capsys.readouterr().out


@pytest.mark.parametrize("answers", [{}, ANSWERS])
def test_proposal_is_valid(answers: dict[str, str], config: Path) -> None:
    parsed = parse(_new(config, **answers).text, "provider.yaml")

    assert parsed.findings == ()
    assert parsed.spec is not None


def test_every_key_that_is_shown_is_valid(config: Path) -> None:
    """What stands behind a comment sign would work without it."""
    text = _new(config, credentials="no").text
    shown = re.sub(r"(?m)^( *)# (?=[a-zA-Z]+: |[a-zA-Z]+:$|  - \{|  [a-z]+: \{)", r"\1", text)

    parsed = parse(shown, "provider.yaml")

    assert shown.count("\n") == text.count("\n")
    assert parsed.findings == ()
    assert parsed.spec is not None
    assert parsed.spec.credentials is not None
    assert parsed.spec.infrastructure is not None
    kinds = {kind.implements: kind for kind in parsed.spec.infrastructure.values()}
    assert kinds.keys() == {"InfraCluster", "InfraMachine", "Remediation"}
    assert kinds["InfraCluster"].features
    assert kinds["InfraMachine"].features


def test_every_top_level_key_is_explained(config: Path) -> None:
    text = _new(config).text
    keys = ProviderSpec.model_json_schema()["properties"]

    untaught = [key for key in keys if not re.search(rf"(?m)^(# )?{key}:", text)]

    assert untaught == []


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(owner=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_answers_stay_data(owner: str, config: Path) -> None:
    text = _new(config, full_name=owner).text

    assert yaml.safe_load(text) == {**yaml.safe_load(_new(config).text), "owner": owner}


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("name", "../../etc"),
        ("name", "acme\nrbac: []"),
        ("name", "{{ cookiecutter._extensions }}"),
        ("name", "no"),
        ("repository", "javascript:alert(1)"),
        ("cluster_kind", "Evil: {}\n  Other"),
        ("cluster_kind", "__import__"),
        ("api_group", "a..b"),
        ("full_name", "\ud800"),
        ("full_name", "a\u202eb"),
    ],
)
def test_hostile_answer_is_found(key: str, answer: str, config: Path) -> None:
    proposal = _new(config, **{key: answer})
    parsed = parse(proposal.text, "provider.yaml")
    valid = parsed.spec is not None

    assert "/" not in proposal.folder
    assert valid == (key == "name" and answer == "no")  # a name like any other, when quoted
    assert bool(parsed.findings) != valid


def test_argument_is_no_template(config: Path) -> None:
    assert _new(config, full_name="{{ 6 * 7 }}{% x %}{# y #}").answers["full_name"] == (
        "{{ 6 * 7 }}{% x %}{# y #}"
    )


def test_defaults_of_the_user(config: Path) -> None:
    text = config.read_text(encoding="utf-8")
    defaults = {"full_name": "A Person", "github_username": "person", "licence": "WTFPL", "x": 1}
    config.write_text(text + yaml.dump({"default_context": defaults}), encoding="utf-8")

    answers = _new(config).answers

    assert answers["full_name"] == "A Person"
    assert answers["repository"] == "https://github.com/person/cluster-api-provider-acme"
    assert answers["licence"] == "Apache-2.0"  # theirs is no choice here


def test_replay(config: Path, tmp_path: Path) -> None:
    first = _new(config, **ANSWERS)

    assert propose_spec(ScaffoldOptions(config_file=config, replay=True)) == first
    kept = tmp_path / "replay" / f"{TEMPLATE}.json"
    assert propose_spec(ScaffoldOptions(config_file=config, replay_file=kept)) == first


def test_replay_of_cookiecutter(config: Path, tmp_path: Path) -> None:
    made = _cookiecutter(config, tmp_path / "made", no_input=True, extra_context=ANSWERS)

    assert propose_spec(ScaffoldOptions(config_file=config, replay=True)).text.encode() == made


def test_cookiecutter_replays_capsmith(config: Path, tmp_path: Path) -> None:
    text = _new(config, **ANSWERS).text

    made = _cookiecutter(config, tmp_path / "made", TEMPLATE_FOLDER, replay=True)

    assert made == text.encode()


def test_replay_imports_nothing(config: Path, tmp_path: Path) -> None:
    kept = tmp_path / "hostile.json"
    hostile = {"name": "acme", "_extensions": ["antigravity.Easter"], "__folder": "../x"}
    kept.write_text(json.dumps({"cookiecutter": hostile}), encoding="utf-8")

    proposal = propose_spec(ScaffoldOptions(config_file=config, replay_file=kept))

    assert proposal.folder == "cluster-api-provider-acme"


def _unreadable(tmp_path: Path) -> Iterator[tuple[str, ScaffoldOptions]]:
    file = tmp_path / "file"
    config = Path(file.parent / "cookiecutterrc")
    yield "cookiecutter-config", ScaffoldOptions(config_file=tmp_path / "none")
    yield "replay-unreadable", ScaffoldOptions(config_file=config, replay=True)
    yield "replay-unreadable", ScaffoldOptions(config_file=config, replay_file=file)
    yield "answer-unusable", ScaffoldOptions(config_file=config, overrides={"nmae": "x"})
    yield "answer-unusable", ScaffoldOptions(config_file=config, overrides={"contract": "v2"})
    yield "answer-unusable", ScaffoldOptions(
        config_file=config, overrides={"credentials": "perhaps"}
    )


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"cookiecutter": {"name": {}}}', "\xff"])
def test_unusable_input_is_reported(content: str, config: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(content, encoding="latin-1")
    for id_, options in _unreadable(tmp_path):
        with pytest.raises(UnreadableInput) as caught:
            propose_spec(options)

        assert caught.value.finding.id == id_ or options.replay_file is not None
        assert caught.value.finding.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("default_context: null", "default_context is not a mapping"),
        ("default_context: 5", "default_context is not a mapping"),
        ("replay_dir: 5", "expected str"),
        ('default_context: {full_name: "{{ nope.x }}"}', "'nope' is undefined"),
        ('default_context: {full_name: "{{"}', "unexpected 'end of template'"),
        ("default_context: &a {name: *a}", "contains itself"),
    ],
)
def test_unusable_user_configuration_is_named(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "cookiecutterrc"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UnreadableInput, match=re.escape(message)) as caught:
        propose_spec(ScaffoldOptions(no_input=True, config_file=path))
    assert caught.value.finding.id == "cookiecutter-config"
    assert caught.value.finding.location.file == str(path)


def test_defaults_that_are_no_answers_are_ignored(config: Path) -> None:
    plain = _new(config).text
    nested = "b: &b [x, x]\nc: &c [*b, *b]\ndefault_context: {full_name: *c, name: {a: b}}\n"
    config.write_text(config.read_text(encoding="utf-8") + nested, encoding="utf-8")
    assert _new(config).text == plain


def test_a_deep_replay_file_is_unreadable(config: Path, tmp_path: Path) -> None:
    path = tmp_path / "replay.json"
    path.write_text('{"cookiecutter": ' + "[" * 100_000 + "]" * 100_000 + "}", encoding="utf-8")
    with pytest.raises(UnreadableInput) as caught:
        propose_spec(ScaffoldOptions(config_file=config, replay_file=path))
    assert caught.value.finding.id == "replay-unreadable"


def test_pipes_are_refused_at_once(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(UnreadableInput, match="not a regular file"):
        propose_spec(ScaffoldOptions(no_input=True, config_file=pipe))
    monkeypatch.setenv("COOKIECUTTER_CONFIG", str(pipe))
    with pytest.raises(UnreadableInput, match="not a regular file"):
        propose_spec(ScaffoldOptions(no_input=True))
    options = ScaffoldOptions(config_file=config, replay_file=pipe.with_suffix(""))
    with pytest.raises(UnreadableInput, match="not a regular file"):
        propose_spec(options)
