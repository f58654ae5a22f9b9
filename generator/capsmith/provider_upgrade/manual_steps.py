"""Find the steps in an upgrade that capsmith cannot take, and the affected files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from capsmith.contract.model import Actor
from capsmith.provider.model import Provider, Resource
from capsmith.provider_upgrade.changes import Step, format_paths, is_lost, list_kind_changes

_API_VERSION = re.compile(
    r"^[ \t-]*[\"']?apiVersion[\"']?:[ \t]*[\"']?([a-z0-9.-]+/[a-z0-9]+)", re.M
)

_CORE = "cluster.x-k8s.io"


_BEFORE_RELEASE = "before you release this"
_BEFORE_NEXT_STAGE = "before the next stage"


@dataclass(frozen=True, slots=True)
class ManualStep:
    """A task that the author or the provider's users must do themselves."""

    who: str
    """Who must act: ``author`` or ``user``."""
    when: str
    """When the task is due, such as ``before you release this``; empty if it does not depend on a
    stage."""
    what: str
    kinds: tuple[str, ...]
    places: tuple[str, ...]
    """Paths to files in the repository, some with a line number:
    ``templates/cluster-template.yaml:12``."""


def list_manual_steps(
    provider: Provider, step: Step, paths: Collection[str], manifests: Mapping[str, str]
) -> tuple[ManualStep, ...]:
    """Return the tasks that remain for the author and for users.

    ``paths`` are the author's files in the repository.  ``manifests`` maps the paths of files with
    Kubernetes objects to their content.
    """
    found = (
        *_meanings(provider, step, paths),
        *_older(provider, manifests),
        _reshaped(provider, step, manifests),
        _older_core(step, manifests),
        ManualStep(
            Actor.USER.value,
            "",
            "Change manifests and ClusterClasses as docs/upgrading.md describes",
            tuple(
                str(each.resource.kind) for each in list_kind_changes(provider, step) if each.wanted
            ),
            ("docs/upgrading.md",),
        ),
    )
    return tuple(each for each in found if each.places or each.kinds)


def _meanings(provider: Provider, step: Step, paths: Collection[str]) -> Iterator[ManualStep]:
    """Yield the fields whose meaning changes and that the author's code sets."""
    for each in list_kind_changes(provider, step):
        fields = [format_paths(change) for change in each.changes if Actor.AUTHOR in change.who]
        if fields:
            yield ManualStep(
                Actor.AUTHOR.value,
                "",
                f"The meaning of these fields changes: {', '.join(fields)}",
                (str(each.resource.kind),),
                tuple(_code(each.resource, paths)),
            )


def _code(resource: Resource, paths: Collection[str]) -> Iterator[str]:
    """Yield the paths to the author's code for a kind."""
    return (path for path in sorted(paths) if path.endswith(f"/{resource.module}.py"))


def _older(provider: Provider, manifests: Mapping[str, str]) -> Iterator[ManualStep]:
    """Yield tasks for manifests in versions that are not stored: served and unserved ones."""
    groups = {str(resource.group) for resource in provider.resources}
    stored = {f"{each.group}/{each.storage_version.name}" for each in provider.resources}
    served = {
        f"{resource.group}/{version.name}"
        for resource in provider.resources
        for version in resource.versions
        if version.served
    }
    yield _files(
        "These files use an API version that is not served. Change the version and its fields, "
        "or take capsmith's new text: capsmith update --restore PATH --force",
        _BEFORE_RELEASE,
        manifests,
        lambda name: _group(name) in groups and name not in served,
    )
    yield _files(
        "These files use an older API version, which is still served. Change the version and its "
        "fields, or take capsmith's new text: capsmith update --restore PATH --force",
        _BEFORE_NEXT_STAGE,
        manifests,
        lambda name: name in served - stored,
    )


def _older_core(step: Step, manifests: Mapping[str, str]) -> ManualStep:
    core = f"{_CORE}/{step.old.version}"
    end = f"Support ends with {step.old.support_end}" if step.old.support_end else ""
    what = f"These files use {core}. {end or 'The end of its support is not announced'}"
    return _files(what, "", manifests, lambda name: name == core)


def _files(
    what: str, when: str, manifests: Mapping[str, str], concerned: Callable[[str], bool]
) -> ManualStep:
    """Return the task of updating manifests that use certain API versions.

    ``concerned`` receives an API version and returns whether to report it.  ``what`` and ``when``
    describe the task; its places are the first such line of each file.
    """
    places = []
    for path, text in sorted(manifests.items()):
        named = (each for each in _API_VERSION.finditer(text) if concerned(each[1]))
        first = next(named, None)
        if first is not None:
            places.append(f"{path}:{_line(text, first.start(1))}")
    return ManualStep(Actor.AUTHOR.value, when, what, (), tuple(places))


def _reshaped(provider: Provider, step: Step, manifests: Mapping[str, str]) -> ManualStep:
    """Return the task of updating manifests that use a field which the storage version lacks."""
    kinds, places = {}, set()
    for each in list_kind_changes(provider, step):
        fields = [change.old.rpartition(".")[2] for change in each.wanted if is_lost(change)]
        names = [str(each.resource.kind), *([str(each.template.kind)] if each.template else [])]
        for path, text in manifests.items():
            kind = re.search(rf"^[ \t-]*kind:[ \t]*({'|'.join(names)})[ \t]*$", text, re.M)
            field = re.search(rf"^[ \t-]*({'|'.join(fields)}):", text, re.M) if fields else None
            if kind is not None and field is not None:
                places.add(f"{path}:{_line(text, field.start(1))}")
                kinds[str(each.resource.kind)] = True
    what = "These files may use fields that the stored API version has elsewhere, or not at all"
    return ManualStep(
        Actor.AUTHOR.value, _BEFORE_NEXT_STAGE, what, tuple(kinds), tuple(sorted(places))
    )


def _group(api_version: str) -> str:
    return api_version.partition("/")[0]


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
