"""Check a release by a running API server's responses to its objects.

This module selects the objects to submit and interprets the responses; :mod:`capsmith.judge.review`
sends the requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from capsmith.contract.model import Rule
from capsmith.judge.release.model import Breach, ReleaseViolation, VerifyOptions
from capsmith.judge.release.release import ReleaseFiles
from capsmith.manifests.bundle import NONE, Artefact, Bundle, find_roles, split
from capsmith.manifests.crds import Crd
from capsmith.manifests.parse import SAMPLE, Manifest, list_of, text_of
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import quote

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
_CLUSTER_CLASS = "ClusterClass"
_EXPECTED = {"NamesAccepted": "True", "Established": "True", "NonStructuralSchema": "False"}
_OF_OTHERS = frozenset({"apiVersion", "kind", "metadata", "status"})


class Condition(NamedTuple):
    """A condition in a CRD's status."""

    type: str
    status: str
    message: str = ""


class CrdAnswer(NamedTuple):
    """An API server's response to the dry run of one of a release's CRDs."""

    manifest: Manifest
    refusal: str = ""
    """Error message of the dry run; empty if the dry run succeeded."""
    conditions: tuple[Condition, ...] = ()
    """Conditions of the existing CRD in the cluster."""


class ObjectAnswer(NamedTuple):
    """The API server's response to applying an object in a dry run."""

    manifest: Manifest
    refusal: str = ""
    applied: Mapping[str, Any] | None = None


class AccessAnswer(NamedTuple):
    """The verbs that core may not use on a kind."""

    crd: Crd
    user: str
    denied: tuple[str, ...]


@dataclass(frozen=True)
class Answers:
    """The API server's responses, and notes about everything that could not be verified."""

    crds: tuple[CrdAnswer, ...] = ()
    objects: tuple[ObjectAnswer, ...] = ()
    access: tuple[AccessAnswer, ...] = ()
    unanswered: tuple[str, ...] = ()


@dataclass(frozen=True)
class Questions:
    """The parts of a release to submit to an API server."""

    crds: tuple[Crd, ...] = ()
    objects: tuple[Manifest, ...] = ()
    """ClusterClasses, and objects of the provider's kinds from cluster templates and
    ClusterClasses."""
    used: tuple[Crd, ...] = ()
    """CRDs of the kinds that core needs permission to access."""


def prepare_questions(
    release: ReleaseFiles, options: VerifyOptions, roles: Iterable[str]
) -> Questions:
    """Select the parts of a release to submit to an API server.

    These are the CRDs, the objects for dry runs, and the CRDs of kinds with one of ``roles``, which
    core must have permission to use.
    """
    bundles = list(split(release.manifests, {}))
    manifests = {id(m): m for bundle in bundles for m in bundle.manifests}
    whole = Bundle(tuple(manifests.values()), {})
    whole = replace(whole, roles=find_roles(whole, options.roles))
    kinds = {(crd.group, crd.kind) for crd in whole.crds}
    objects = (
        manifest
        for artefact in (Artefact.CLUSTER_TEMPLATE, Artefact.CLUSTER_CLASS)
        for manifest in whole.files(artefact)
        if manifest.kind == _CLUSTER_CLASS or (manifest.api_group, manifest.kind) in kinds
    )
    known = set(roles) - {NONE}
    used = tuple(crd for crd in whole.crds if crd.role in known)
    return Questions(whole.crds, tuple(objects), used)


def judge_live(
    release: ReleaseFiles, answers: Answers, rules: Mapping[str, Rule], options: VerifyOptions
) -> tuple[ReleaseViolation, ...]:
    """Return the violations revealed by the API server's responses, sorted by file and position.

    ``rules`` are the live rules by id.
    """
    found = (
        ReleaseViolation.of(
            rules[breach.rule],
            breach,
            release.locate(breach.manifest, breach.path),
            options.cores,
        )
        for breach in _breaches(answers)
    )
    return tuple(sorted(dict.fromkeys(found), key=lambda violation: violation.sort_key))


def _breaches(answers: Answers) -> Iterator[Breach]:
    for crd in answers.crds:
        if crd.refusal:
            message = f"the API server refuses {crd.manifest}: {crd.refusal}"
            yield Breach("LV-01", crd.manifest, message)
        for condition in crd.conditions:
            if condition.status != _EXPECTED.get(condition.type, condition.status):
                message = f"{crd.manifest}: {condition.type} is {condition.status}"
                detail = f": {condition.message}" if condition.message else ""
                yield Breach("LV-02", crd.manifest, message + detail)
    for answer in answers.objects:
        # A value set by a user would be different.
        if answer.refusal and not _has_sample(answer.manifest.document):
            message = f"the API server refuses {answer.manifest}: {answer.refusal}"
            yield Breach("LV-03", answer.manifest, message)
        if answer.applied is not None and answer.manifest.kind != _CLUSTER_CLASS:
            for path, what in _differences(answer.manifest.document, answer.applied):
                where = ".".join(map(str, path))
                message = f"{answer.manifest}: the API server {what} {where}"
                yield Breach("LV-04", answer.manifest, message, path)
    for access in answers.access:
        if access.denied:
            verbs = ", ".join(access.denied)
            message = f"{access.user} cannot {verbs} {access.crd.plural}.{access.crd.group}"
            yield Breach("LV-05", access.crd.manifest, message)


def _differences(
    applied: Mapping[str, Any], stored: Mapping[str, Any]
) -> Iterator[tuple[Path, str]]:
    """Yield the path and reason of each value that an apply changes; added defaults are ignored."""
    for name, value in applied.items():
        if name not in _OF_OTHERS:
            yield from _difference(value, stored.get(name), (name,))


def _difference(applied: Any, stored: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if applied is None:
        return
    if isinstance(applied, Mapping) and isinstance(stored, Mapping):
        for name, value in applied.items():
            yield from _difference(value, stored.get(name), (*path, str(name)))
    elif isinstance(applied, list) and isinstance(stored, list) and len(applied) == len(stored):
        for number, (value, kept) in enumerate(zip(applied, stored, strict=True)):
            yield from _difference(value, kept, (*path, number))
    # The API server prunes undeclared fields without reporting it.
    elif stored is None:
        yield path, "drops"
    # In Python, True equals 1, but not in JSON.
    elif applied != stored or isinstance(applied, bool) != isinstance(stored, bool):
        yield path, f"replaces {quote(str(applied))} with {quote(str(stored))} in"


def _has_sample(document: Any) -> bool:
    if isinstance(document, Mapping):
        return any(_has_sample(part) for pair in document.items() for part in pair)
    if isinstance(document, list):
        return any(map(_has_sample, document))
    return isinstance(document, str) and SAMPLE in document


def read_conditions(crd: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Return the conditions in a CRD's status. Missing fields become empty strings."""
    return tuple(
        Condition(*(text_of(each, key) for key in ("type", "status", "message")))
        for each in list_of(crd, "status", "conditions")
    )
