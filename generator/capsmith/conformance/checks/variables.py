"""``${VARIABLES}`` that clusterctl refuses, or reads otherwise than they look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capsmith.conformance.bundle import Artefact
from capsmith.conformance.checks.registry import Context, Problem, check
from capsmith.conformance.manifests import Manifest
from capsmith.conformance.variables import Trouble, Variable, scan

_MEANING = {
    Trouble.SYNTAX: "cannot be read",
    Trouble.NESTED: "has a variable in its default, and becomes empty",
    Trouble.EMPTY: "has no default, and has to be set",
}
_ALWAYS = (Artefact.COMPONENTS, Artefact.CLUSTER_TEMPLATE)


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of problem: ``syntax``, ``nested`` or ``empty``."""

    trouble: str


@check("variable-trouble", Kind)
def variable_trouble(context: Context, params: Kind) -> Iterator[Problem]:
    """CC-40 to CC-42: forms that do not do what they seem to do."""
    trouble = Trouble(params.trouble)
    for manifest, variable in _variables(context, (*_ALWAYS, Artefact.SOURCE)):
        if variable.trouble is trouble and not variable.commented:
            yield Problem(manifest, f"variable {variable.text} {_MEANING[trouble]}", variable.line)


@check("variable-commented")
def variable_commented(context: Context) -> Iterator[Problem]:
    """CC-43: clusterctl substitutes variables in comments, too."""
    for manifest, variable in _variables(context, _ALWAYS):
        if variable.commented and (variable.default is None or variable.trouble):
            yield Problem(manifest, f"a comment has variable {variable.text}", variable.line)


def _variables(
    context: Context, artefacts: tuple[Artefact, ...]
) -> Iterator[tuple[Manifest, Variable]]:
    """Yield the variables of each file once."""
    seen: set[str] = set()
    for manifest in (m for artefact in artefacts for m in context.bundle.files(artefact)):
        if manifest.file not in seen:
            seen.add(manifest.file)
            for variable in scan(manifest.text):
                yield manifest, variable
