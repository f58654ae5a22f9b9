"""Parse the user's settings for ``capsmith verify``: targets, roles, and accepted violations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from capsmith.contract.model import Contract
from capsmith.errors import InvalidOption, UnreadableInput
from capsmith.judge.release.model import Ignored, ReleaseViolation
from capsmith.judge.release.targets import Core, Targets, format_source_note, parse_core
from capsmith.judge.release.verdict import compute_fingerprint
from capsmith.manifests.bundle import NONE
from capsmith.yamldoc.document import Document, parse_document

_CORE = "core="
_IGNORED = {"rule", "reason", "file", "object"}


def parse_target(text: str, targets: Targets) -> tuple[Core, ...]:
    """Return the releases of core selected by ``core=v1.11..v1.13`` or ``core=v1.13``.

    Raises InvalidOption for any other form, and for unknown releases.
    """
    known = targets.known
    first, dots, last = text.removeprefix(_CORE).partition("..")
    ends = [parse_core(each) for each in (first, last if dots else first)]
    cores = tuple(
        core
        for core in known
        if None not in ends and (ends[0] or core) <= core <= (ends[1] or core)
    )
    span = f"{known[0]}..{known[-1]}"
    note = format_source_note(targets.from_source)
    if not text.startswith(_CORE) or None in ends:
        raise InvalidOption(f"{text!r} is not a target; use core={span}{note}")
    if not cores or not set(ends) <= set(known):
        raise InvalidOption(f"{text!r} includes releases outside of {span}{note}")
    return cores


def find_ended_contract(text: str, contracts: Mapping[str, Contract]) -> str:
    """Return the contract version whose support ends with a target such as ``core=v1.16``.

    The result is empty for any other target.
    """
    core = parse_core(text.removeprefix(_CORE)) if text.startswith(_CORE) else None
    ends = {
        version: parse_core(contract.end.core)
        for version, contract in contracts.items()
        if contract.end is not None
    }
    return next((version for version, end in ends.items() if core is not None and end == core), "")


def parse_role(text: str, known: Iterable[str]) -> tuple[str, str]:
    """Return the kind and the role from ``Kind=role``.

    ``none`` is always a valid role, and case does not matter.  Raises InvalidOption for a role
    that is not in ``known``, and for any other form.
    """
    kind, equals, role = text.partition("=")
    roles = {each.lower(): each for each in (*known, NONE)}
    if not kind or not equals or role.lower() not in roles:
        raise InvalidOption(
            f"{text!r} is not a role; use Kind=role with one of {', '.join(roles.values())}"
        )
    return kind, roles[role.lower()]


def parse_config(
    text: str, file: str, known: Iterable[str]
) -> tuple[dict[str, str], tuple[Ignored, ...]]:
    """Return the roles and the accepted violations from a configuration file.

    ``text`` is its content, ``file`` the name to use in messages, and ``known`` the allowed roles.
    Raises UnreadableInput (``verify-config``) for an invalid file.
    """
    document, findings = parse_document(text, file)
    if document is None or findings:
        finding = findings[0]
        raise UnreadableInput(
            finding.id, finding.message, file=file, line=finding.location.line, hint=finding.hint
        )
    unknown = set(document.data) - {"roles", "ignore"}
    if unknown:
        raise _wrong(document, (sorted(unknown)[0],), "is not a known key", "Use roles and ignore.")
    roles = _roles(document, list(known))
    entries = document.data.get("ignore") or []
    if not isinstance(entries, list):
        raise _wrong(
            document, ("ignore",), "must be a list", "Write a list with one entry for each rule."
        )
    return roles, tuple(_ignored(document, number, entry) for number, entry in enumerate(entries))


def _roles(document: Document, known: list[str]) -> dict[str, str]:
    data = document.data.get("roles") or {}
    if not isinstance(data, Mapping):
        raise _wrong(document, ("roles",), "must be a mapping", "Write `Kind: role`.")
    roles = {}
    for kind, role in data.items():
        try:
            name, value = parse_role(f"{kind}={role}", known)
        except ValueError as error:
            raise _wrong(document, ("roles", kind), str(error), "Correct the role.") from None
        roles[name] = value
    return roles


def _ignored(document: Document, number: int, entry: Any) -> Ignored:
    path = ("ignore", number)
    if not isinstance(entry, Mapping) or not set(entry) <= _IGNORED:
        raise _wrong(
            document, path, "can only have the keys rule, reason, file and object", "Correct it."
        )
    if not all(isinstance(value, str) and value.strip() for value in entry.values()):
        raise _wrong(document, path, "has a value that is not a string", "Use strings only.")
    if not {"rule", "reason"} <= set(entry):
        raise _wrong(
            document,
            path,
            "must have rule and reason",
            "Add the rule, and the reason why the violation is accepted.",
        )
    return Ignored(**entry)


def _wrong(
    document: Document, path: tuple[str | int, ...], what: str, hint: str
) -> UnreadableInput:
    name = ".".join(map(str, path))
    line = document.key(path).line
    return UnreadableInput(
        "verify-config", f"{name}: {what}", file=document.file, line=line, hint=hint
    )


def parse_baseline(text: str, file: str) -> dict[str, int]:
    """Return the accepted number of occurrences of each known violation, by fingerprint.

    ``text`` is the content of a baseline file, and ``file`` the name to use in messages.  Raises
    UnreadableInput (``verify-baseline``) for an invalid file.
    """
    try:
        data = json.loads(text)
        known = data["violations"] if data["version"] == 1 else None
        if isinstance(known, dict) and all(isinstance(n, int) for n in known.values()):
            return dict(known)
    # A baseline comes from a repository, so its content is untrusted.
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    hint = "Write a new one with --write-baseline."
    raise UnreadableInput("verify-baseline", "the file is not a baseline", file=file, hint=hint)


def render_baseline(violations: Iterable[ReleaseViolation]) -> str:
    """Return the content of a baseline file that accepts all of ``violations``."""
    counts: dict[str, int] = {}
    for violation in violations:
        key = compute_fingerprint(violation)
        counts[key] = counts.get(key, 0) + 1
    return json.dumps({"version": 1, "violations": dict(sorted(counts.items()))}, indent=2) + "\n"
