"""Providers, their newest releases as ``releases.json`` has them, and reviews of findings."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).parent
PROVIDERS = FOLDER / "providers.yaml"
RELEASES = FOLDER / "releases.json"
REVIEWS = FOLDER / "reviews.yaml"
RECORD = "release.json"
"""Name of the file in a release folder that says how its files were obtained."""
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


class Provider(NamedTuple):
    """A public provider, and what its release workflow publishes."""

    name: str
    repository: str
    """Owner and name on GitHub."""
    components: Mapping[str, str]
    """Sources in the repository by release file: a kustomization's folder, or a file."""
    metadata: str = "metadata.yaml"
    copies: Mapping[str, str] = {}
    """Copies of files to make before a build, as the repository's Makefile does."""
    tags: str = r"v?\d+\.\d+\.\d+"
    """Pattern of the tags that are releases."""
    omitted: str = ""
    """What the release includes, but a build from the sources does not; empty if nothing."""


class Origin(StrEnum):
    """Where the files of a release come from."""

    ASSETS = "assets"
    """Downloaded from the release."""
    TAG = "tag"
    """Built from the sources at the tag."""


class Record(NamedTuple):
    """How the files of a release were obtained; the content of ``release.json``."""

    date: str
    origin: Origin
    commands: tuple[str, ...]
    problem: str = ""
    """Why the release cannot be judged; empty if it can."""


class FieldFinding(NamedTuple):
    """A violation in a release."""

    rule: str
    effect: str
    object: str
    message: str
    when: str
    consequence: str
    cores: tuple[str, ...]
    file: str
    line: int
    link: str


class FieldStep(NamedTuple):
    """A step to the next contract that is left."""

    rule: str
    kind: str
    """Kind and role, such as ``AcmeMachine (InfraMachine)``, or the name of a file."""
    action: str


class FieldRelease(NamedTuple):
    """The newest release of a provider, and what ``capsmith verify`` says of it."""

    repository: str
    version: str
    record: Record
    judged: str
    """Day of the judgement, as in 2026-11-26."""
    capsmith: str
    files: Mapping[str, str]
    """SHA-256 digests by file."""
    series: str
    """Contract of the release series in ``metadata.yaml``; empty if there is none."""
    labels: tuple[str, ...]
    """Contracts in the labels of the CRDs, oldest first."""
    cores: tuple[str, ...]
    """Releases of core for which the release was judged."""
    steps: int
    """Number of steps to the next contract that are visible in manifests, with those done."""
    left: tuple[FieldStep, ...]
    """Steps that are neither done nor optional."""
    findings: tuple[FieldFinding, ...]


class Opinion(StrEnum):
    """What a person who compared a finding with the source decided."""

    FACT = "fact"
    ARGUABLE = "arguable"


class Review(NamedTuple):
    """The review of findings or steps that say the same, by hand."""

    rule: str
    opinion: Opinion
    reason: str
    """What the reviewer saw in the source."""
    repository: str = ""
    """Owner and name; empty for all providers."""
    release: str = ""
    """Release that was looked at. The review holds for others with the same messages."""
    messages: tuple[str, ...] = ()
    """Messages of the findings, or actions of the steps; empty for all of the rule."""
    when: str = ""
    """Condition under which the findings break something; empty for that of the rule."""

    def covers(self, repository: str, rule: str, message: str) -> bool:
        """Return whether the review holds for a finding or a step of a provider's release."""
        return (
            self.rule == rule
            and self.repository in ("", repository)
            and (not self.messages or message in self.messages)
        )


def parse_version(tag: str) -> tuple[int, ...] | None:
    """Return the numbers of a stable version, or None for any other tag."""
    match = _VERSION.fullmatch(tag)
    return tuple(int(part) for part in match.groups()) if match else None


def choose_newest(provider: Provider, tags: list[str]) -> str | None:
    """Return the tag of the greatest stable version, or None if there is no release."""
    versions = ((parse_version(tag), tag) for tag in tags if re.fullmatch(provider.tags, tag))
    return max(((version, tag) for version, tag in versions if version), default=(None, None))[1]


def load_providers(file: Path = PROVIDERS) -> list[Provider]:
    """Return the providers of the page, sorted by name."""
    found = [Provider(**each) for each in yaml.safe_load(file.read_text(encoding="utf-8"))]
    return sorted(found, key=lambda provider: provider.name.lower())


def load_reviews(file: Path = REVIEWS) -> list[Review]:
    """Return the reviews of findings."""
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    return [
        Review(
            **{
                **each,
                "opinion": Opinion(each["opinion"]),
                "messages": tuple(each.get("messages", ())),
            }
        )
        for each in found
    ]


def load_releases(file: Path = RELEASES) -> list[FieldRelease]:
    """Return the judged releases; none if the file does not exist."""
    if not file.exists():
        return []
    return [_release(each) for each in json.loads(file.read_text(encoding="utf-8"))]


def _release(data: Any) -> FieldRelease:
    findings = (
        FieldFinding(**{**each, "cores": tuple(each["cores"])}) for each in data["findings"]
    )
    sequences = {key: tuple(data[key]) for key in ("labels", "cores")}
    return FieldRelease(
        **{
            **data,
            **sequences,
            "record": parse_record(data["record"]),
            "left": tuple(FieldStep(**each) for each in data["left"]),
            "findings": tuple(findings),
        }
    )


def find_outdated(reviews: Sequence[Review], releases: Sequence[FieldRelease]) -> list[str]:
    """Return a line for each review, and each of its messages, that no judged release needs.

    A review of another release than the judged one is kept: it may hold again.
    """
    by_repository = {release.repository: release for release in releases}
    found: list[str] = []
    for review in reviews:
        release = by_repository.get(review.repository)
        if review.repository and (release is None or release.version != review.release):
            continue
        shown = [release] if release else releases
        said = {message for each in shown for message in _list_messages(each, review)}
        place = f"{review.rule} {review.repository}".rstrip()
        found += [f"{place}: {each}" for each in review.messages if each not in said]
        if not review.messages and not said:
            found.append(place)
    return found


def _list_messages(release: FieldRelease, review: Review) -> list[str]:
    """Return the messages of a release's findings and steps for which a review holds."""
    items = [(finding.rule, finding.message) for finding in release.findings]
    items += [(step.rule, step.action) for step in release.left]
    return [text for rule, text in items if review.covers(release.repository, rule, text)]


def create_release_folder(folder: Path, provider: Provider, version: str) -> Path:
    """Return the empty folder of a provider's release below ``folder``."""
    target = folder / provider.repository / version
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    return target


def write_record(target: Path, record: Record) -> None:
    """Write the record of a release into its folder."""
    (target / RECORD).write_text(json.dumps(record._asdict(), indent=1), encoding="utf-8")


def parse_record(data: Any) -> Record:
    """Return a record from the data of a JSON file."""
    commands = tuple(data["commands"])
    return Record(**{**data, "origin": Origin(data["origin"]), "commands": commands})


def render_releases(releases: list[FieldRelease]) -> str:
    """Return the text of ``releases.json``."""
    data = [
        {
            **each._asdict(),
            "record": each.record._asdict(),
            "left": [step._asdict() for step in each.left],
            "findings": [finding._asdict() for finding in each.findings],
        }
        for each in sorted(releases, key=lambda release: release.repository)
    ]
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"
