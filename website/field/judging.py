"""Judge release files with ``capsmith verify``."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import yaml

from capsmith import __version__
from capsmith.commands.verify import VerifyRequest, run_verify
from capsmith.contract.model import EffectClass
from capsmith.errors import CapsmithError
from capsmith.judge.release.model import ReleaseViolation, StepState
from capsmith.manifests.parse import parse_manifests
from website.field.model import (
    RECORD,
    FieldFinding,
    FieldRelease,
    FieldStep,
    Origin,
    Provider,
    choose_newest,
    parse_record,
)

NEXT = "core=v1.16"
"""The release of core with which support for contract v1beta1 ends."""
SET_AT_RELEASE = ("CC-27",)
"""Rules on what a release workflow writes into files that are built: the references of images."""
_LABEL = "cluster.x-k8s.io/v"


def judge_releases(folder: Path, providers: list[Provider], day: str) -> list[FieldRelease]:
    """Return the newest release of each provider that the folder has, judged on ``day``."""
    found: list[FieldRelease] = []
    for provider in providers:
        place = folder / provider.repository
        versions = [each.name for each in place.glob("*") if (each / RECORD).is_file()]
        newest = choose_newest(provider, versions)
        if newest is not None:
            found.append(judge_release(provider, place / newest, day))
    return found


def judge_release(provider: Provider, folder: Path, day: str) -> FieldRelease:
    """Return a release and its findings. The name of the folder is the version."""
    record = parse_record(json.loads((folder / RECORD).read_text(encoding="utf-8")))
    files = {each.name: each for each in sorted(folder.glob("*.y*ml"))}
    release = FieldRelease(
        repository=provider.repository,
        version=folder.name,
        record=record,
        judged=day,
        capsmith=__version__,
        files={name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()},
        series=_find_series(files.get("metadata.yaml"), folder.name),
        labels=(),
        cores=(),
        steps=0,
        left=(),
        findings=(),
    )
    if record.problem:
        return release
    try:
        return _judge(release, folder)
    except CapsmithError as error:
        return release._replace(record=record._replace(problem=error.finding.message))


def _judge(release: FieldRelease, folder: Path) -> FieldRelease:
    ignore = SET_AT_RELEASE if release.record.origin is Origin.TAG else ()
    verdict = run_verify([folder], VerifyRequest(ignore=ignore))
    migration = run_verify([folder], VerifyRequest(target=NEXT)).migration
    steps = migration.steps if migration is not None else ()
    return release._replace(
        labels=_find_labels(folder),
        cores=tuple(str(core) for core in verdict.cores),
        steps=sum(step.state in (StepState.DONE, StepState.LEFT) for step in steps),
        left=tuple(
            FieldStep(step.rules[0], step.kind, step.action)
            for step in steps
            if step.state is StepState.LEFT
        ),
        findings=tuple(
            _make_finding(each)
            for each in verdict.violations
            if each.effect is not EffectClass.ADVICE
        ),
    )


def _make_finding(violation: ReleaseViolation) -> FieldFinding:
    return FieldFinding(
        rule=violation.id,
        effect=violation.effect.value,
        object=violation.subject,
        message=violation.message,
        when=violation.when,
        consequence=violation.consequence,
        cores=tuple(str(core) for core in violation.cores),
        file=Path(violation.location.file).name,
        line=violation.location.line,
        link=violation.link,
    )


def _find_labels(folder: Path) -> tuple[str, ...]:
    """Return the contracts in the labels of CRDs, oldest first."""
    found: set[str] = set()
    for file in folder.glob("*components*.y*ml"):
        for manifest in parse_manifests(file.read_text(encoding="utf-8"), file.name)[0]:
            if manifest.kind == "CustomResourceDefinition":
                labels = manifest.mapping("metadata", "labels")
                found |= {
                    str(key).partition("/")[2] for key in labels if str(key).startswith(_LABEL)
                }
    return tuple(sorted(found))


def _find_series(metadata: Path | None, version: str) -> str:
    """Return the contract of the version's series in ``metadata.yaml``, or an empty string."""
    if metadata is None:
        return ""
    try:
        document = yaml.safe_load(metadata.read_text(encoding="utf-8"))
        series = document["releaseSeries"]
        names = {f"{each['major']}.{each['minor']}": str(each["contract"]) for each in series}
    except (yaml.YAMLError, KeyError, TypeError):
        return ""
    return names.get(".".join(version.removeprefix("v").split(".")[:2]), "")
