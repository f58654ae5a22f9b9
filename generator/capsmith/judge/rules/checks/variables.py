"""``${VARIABLES}`` that clusterctl refuses, or treats otherwise than they look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capsmith.judge.rules.checks.registry import Context, Problem, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.parse import Manifest
from capsmith.manifests.variables import Trouble, Variable, required, scan

_MEANING = {
    Trouble.SYNTAX: "is malformed",
    Trouble.EMPTY: "has no default and must be set",
}
_ALWAYS = (Artefact.COMPONENTS, Artefact.CLUSTER_TEMPLATE)


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of problem: ``syntax`` or ``empty``."""

    trouble: str


@check("variable-trouble", Kind)
def variable_trouble(context: Context, params: Kind) -> Iterator[Problem]:
    """CC-40, CC-41: forms that clusterctl refuses, or that have no default though they seem to."""
    trouble = Trouble(params.trouble)
    for manifest, variables in _files(context, (*_ALWAYS, Artefact.SOURCE)):
        for variable in variables:
            # clusterctl refuses a file for a form in a comment as well.
            if variable.trouble is trouble and (
                trouble is Trouble.SYNTAX or not variable.commented
            ):
                message = f"variable {variable.text} {_MEANING[trouble]}"
                yield Problem(manifest, message, variable.line)


@dataclass(frozen=True, slots=True)
class Given:
    """Variables to which clusterctl always gives a value."""

    given: tuple[str, ...]


@check("variable-unasked", Given)
def variable_unasked(context: Context, params: Given) -> Iterator[Problem]:
    """CC-42: clusterctl requires a variable only if its first occurrence shows no default."""
    for manifest, variables in _files(context, _ALWAYS):
        known = {*required(variables), *params.given}
        for variable in variables:
            if variable.commented or variable.trouble is Trouble.SYNTAX:
                continue
            own = () if variable.default is not None else (variable.name,)
            for name in (*own, *variable.inner):
                if name not in known:
                    known.add(name)
                    message = f"clusterctl does not require {name} in {variable.text}"
                    yield Problem(manifest, f"{message}; if unset, it is empty", variable.line)


@check("variable-commented")
def variable_commented(context: Context) -> Iterator[Problem]:
    """CC-43: clusterctl requires variables that are in comments only."""
    for manifest, variables in _files(context, _ALWAYS):
        used = required(variable for variable in variables if not variable.commented)
        for name in sorted(required(variables) - used):
            first = next(variable for variable in variables if variable.name == name)
            yield Problem(manifest, f"a comment contains variable {first.text}", first.line)


def _files(
    context: Context, artefacts: tuple[Artefact, ...]
) -> Iterator[tuple[Manifest, tuple[Variable, ...]]]:
    """Yield each file with its variables, as its first object."""
    seen: set[str] = set()
    for manifest in (m for artefact in artefacts for m in context.bundle.files(artefact)):
        if manifest.file not in seen:
            seen.add(manifest.file)
            yield manifest, scan(manifest.text)
