"""``capsmith new``: create a first provider.yaml from cookiecutter's questions.

The folder ``capsmith-provider`` is a regular cookiecutter template: ``cookiecutter <this
repository>`` asks the same questions and writes the same bytes.  This module writes nothing to a
provider repository, and cookiecutter is not needed afterwards.

Answers are data.  Unlike in cookiecutter's own command, answers from arguments or a replay file are
never evaluated as templates, and the template prints every answer as a YAML scalar.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from cookiecutter import config as cookiecutter_config
from cookiecutter import exceptions, replay
from cookiecutter.generate import apply_overwrites_to_context
from cookiecutter.prompt import prompt_for_config, render_variable
from cookiecutter.utils import create_env_with_context
from jinja2 import Environment, TemplateError

from capsmith.errors import UnreadableInput
from capsmith.findings import Finding, Location
from capsmith.printable import find_unprintable
from capsmith.regular_files import read_regular
from capsmith.yamldoc.quote import clip

TEMPLATE = "capsmith-provider"
"""Name of the template's folder. cookiecutter also uses it for replay files."""
MAX_CHARACTERS: Final = 500
"""Maximum number of characters in an answer. No repository URL needs more.

YAML limits keys to 1,024 characters.
"""
_HINT: Final = "Answer with at most {limit} printable characters, without control characters."
_SPEC = ("{{cookiecutter.__folder}}", "provider.yaml")

Answer = str | bool


@dataclass(frozen=True, slots=True)
class ScaffoldOptions:
    """Sources of answers besides prompts. Attributes are named after cookiecutter's options."""

    no_input: bool = False
    overrides: Mapping[str, Answer] | None = None
    config_file: Path | None = None
    default_config: bool = False
    replay: bool = False
    replay_file: Path | None = None

    @property
    def asks(self) -> bool:
        """Return whether to prompt the user for answers."""
        return not (self.no_input or self.replays)

    @property
    def replays(self) -> bool:
        """Return whether to use an earlier run's answers."""
        return self.replay or self.replay_file is not None

    def retry(self, proposal: Proposal, unusable: Collection[str] = ()) -> ScaffoldOptions:
        """Return options for another round, with the answers in ``proposal`` as defaults.

        Answers to ``unusable`` questions are discarded.  Answers that were only defaults are
        discarded as well, because a default may depend on an answer that changes now.
        """
        answers = {**(self.overrides or {}), **proposal.typed}
        kept = {key: answer for key, answer in answers.items() if key not in unusable}
        return replace(self, overrides=kept)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The provider.yaml that `capsmith new` builds from the answers, before validation."""

    answers: Mapping[str, Answer]
    typed: Mapping[str, Answer]
    """Answers that differ from their defaults, which may depend on other answers."""
    folder: str
    """The repository folder's name if the user does not specify one."""
    text: str
    """Content of provider.yaml."""


def propose_spec(options: ScaffoldOptions) -> Proposal:
    """Ask the questions, save the answers for ``--replay``, and return the rendered provider.yaml.

    Raises UnreadableInput for an invalid user configuration, replay file or override.
    """
    settings = _settings(options)
    questions = _questions(settings["default_context"])
    overrides = dict(options.overrides or {})
    if options.replays:
        overrides = {**_replayed(options.replay_file, settings, questions), **overrides}
    _override(questions, overrides)
    context = {"cookiecutter": questions}
    answers = _asked(context, options)
    with contextlib.suppress(OSError):  # a convenience, as with a home that cannot be written
        replay.dump(settings["replay_dir"], TEMPLATE, {"cookiecutter": answers})
    source = files(__name__).joinpath(TEMPLATE, *_SPEC).read_text(encoding="utf-8")
    environment = create_env_with_context(context)
    text = environment.from_string(source).render(cookiecutter=answers)
    public = {key: answers[key] for key in _public(answers)}
    # An answer that equals its default was not chosen by the user, and may depend on other answers.
    typed = {
        key: answer
        for key, answer in public.items()
        if answer != _default(environment, questions[key], answers)
    }
    return Proposal(public, typed, str(answers["__folder"]), text)


def check_answers(answers: Mapping[str, str | bool]) -> tuple[Finding, ...]:
    """Return a finding for each answer that provider.yaml cannot contain, located at its question.

    All findings have the id ``answer-unusable``.
    """
    return tuple(
        Finding("answer-unusable", problem, Location(key), hint=_HINT.format(limit=MAX_CHARACTERS))
        for key, answer in answers.items()
        if isinstance(answer, str)
        for problem in _find_problems(answer)
    )


def _find_problems(answer: str) -> Iterator[str]:
    if len(answer) > MAX_CHARACTERS:
        yield f"the answer has {len(answer):,} characters"
    elif character := find_unprintable(answer):
        yield f"the answer contains the character U+{ord(character):04X}"


def _asked(context: dict[str, Any], options: ScaffoldOptions) -> dict[str, Any]:
    try:
        return dict(prompt_for_config(context, not options.asks))
    except exceptions.UndefinedVariableInTemplate as error:
        raise _unusable_settings(f"default_context: {error.error.message}", options) from error
    except (TemplateError, ArithmeticError, RecursionError, TypeError, ValueError) as error:
        raise _unusable_settings(f"default_context: {error}", options) from error


def _default(environment: Environment, question: Any, answers: dict[str, Any]) -> Answer | None:
    first = question[0] if isinstance(question, list) else question
    return first if isinstance(first, bool) else render_variable(environment, first, answers)


def _settings(options: ScaffoldOptions) -> dict[str, Any]:
    named = os.fspath(options.config_file) if options.config_file is not None else None
    try:
        if not options.default_config:
            _require_regular(Path(named or _find_settings()))
        settings = dict(cookiecutter_config.get_user_config(named, options.default_config))
    except RecursionError as error:
        raise _unusable_settings("it contains itself", options) from error
    except (
        exceptions.ConfigDoesNotExistException,
        exceptions.InvalidConfiguration,
        OSError,
        TypeError,
        UnicodeDecodeError,
    ) as error:
        raise _unusable_settings(str(error), options) from error
    if not isinstance(settings["default_context"], Mapping):
        raise _unusable_settings("default_context is not a mapping", options)
    return settings


def _unusable_settings(message: str, options: ScaffoldOptions) -> UnreadableInput:
    return UnreadableInput(
        "cookiecutter-config",
        clip(message),
        file=os.fspath(options.config_file or _find_settings()),
        hint="Correct the file, or ignore it: --default-config.",
    )


def _find_settings() -> str:
    """Return the path of the user configuration that cookiecutter reads."""
    return os.environ.get("COOKIECUTTER_CONFIG") or cookiecutter_config.USER_CONFIG_PATH


def _require_regular(path: Path) -> None:
    """Raise OSError if cookiecutter would wait for a pipe or a device, or could not read a file."""
    # Other errors have messages of cookiecutter's own.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        read_regular(path)


def _questions(defaults: Mapping[str, Any]) -> dict[str, Any]:
    text = files(__name__).joinpath(TEMPLATE, "cookiecutter.json").read_text(encoding="utf-8")
    questions: dict[str, Any] = json.loads(text)
    for key in _public(questions):
        if key in defaults and _is_default(defaults[key]):
            default = defaults[key]
            if not isinstance(default, bool | list):
                default = str(default)
            # One at a time, because another template's default may not be a valid choice here.
            with contextlib.suppress(ValueError):
                apply_overwrites_to_context(questions, {key: default})
    return questions


def list_questions() -> dict[str, str]:
    """Return the keys of all questions in order, each with its prompt."""
    questions = _questions({})
    prompts = questions["__prompts__"]
    texts = {key: prompts[key] for key in _public(questions)}
    return {
        key: text["__prompt__"] if isinstance(text, dict) else text for key, text in texts.items()
    }


def _is_default(value: Any) -> bool:
    """Return whether a value can be a default answer: a scalar, or a list of strings."""
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, bool | str | int | float)


def _replayed(
    file: Path | None, settings: Mapping[str, Any], questions: Mapping[str, Any]
) -> dict[str, Answer]:
    folder, name = (settings["replay_dir"], TEMPLATE) if file is None else (file.parent, file.name)
    try:
        read_regular(Path(replay.get_file_name(os.fspath(folder), name)))  # a pipe would block
        kept = replay.load(folder, name)["cookiecutter"]
        # Only answers, because a replay file could also name extensions for Jinja to import.
        return {key: kept[key] for key in _public(questions) if key in kept}
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UnreadableInput(
            "replay-unreadable",
            f"cannot read the answers to replay: {error}",
            file=replay.get_file_name(os.fspath(folder), name),
            hint="Answer the questions once: capsmith new.",
        ) from error


def _override(questions: dict[str, Any], overrides: Mapping[str, Answer]) -> None:
    known = tuple(_public(questions))
    for key, answer in overrides.items():
        if key not in known:
            raise _unusable(f"unknown question {key!r}", f"Use one of: {', '.join(known)}.")
        if not isinstance(answer, bool if isinstance(questions[key], bool) else str) and not (
            isinstance(questions[key], bool) and isinstance(answer, str)
        ):
            raise _unusable(f"{answer!r} is not a valid answer to {key!r}", "Enter plain text.")
        choice = not isinstance(questions[key], str)
        try:
            apply_overwrites_to_context(
                questions, {key: answer if choice else _verbatim(str(answer))}
            )
        except ValueError as error:
            switch = isinstance(questions[key], bool)
            hint = "Enter yes or no." if switch else "Enter one of the choices."
            raise _unusable(str(error), hint) from error


def _unusable(message: str, hint: str) -> UnreadableInput:
    return UnreadableInput("answer-unusable", message, hint=hint)


def _verbatim(answer: str) -> str:
    """Return ``answer`` as a template that renders to it; Jinja normalises line endings too."""
    if not find_unprintable(answer) and "{" not in answer:
        return answer
    # cookiecutter renders overrides as templates; in this form no character of the answer is
    # syntax.
    return '{{ "' + "".join(f"\\U{ord(character):08x}" for character in answer) + '" }}'


def _public(keys: Mapping[str, Any]) -> Iterator[str]:
    return (key for key in keys if not key.startswith("_"))
