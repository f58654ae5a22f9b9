"""Go templates in the patches of a ClusterClass: they parse, and read variables that exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from capsmith.judge.rules.checks.registry import Context, Problem, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.go_template import TemplateError, parse_template
from capsmith.manifests.parse import Manifest, list_of, mapping_of, text_of
from capsmith.manifests.variable_values import has_variable
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import listed

_BUILTIN = "builtin"
_DISCOVERY = "discoverVariablesExtension"
_APPLIED = "the patch is applied"
_WITH_VALUE = frozenset({"add", "replace"})


class _Text(NamedTuple):
    """A template of a patch."""

    path: Path
    name: str
    """For people."""
    text: str


@check("class-templates")
def class_templates(context: Context) -> Iterator[Problem]:
    """TP-23: templates of patches parse, and read variables that the class defines."""
    for artefact in (Artefact.CLUSTER_TEMPLATE, Artefact.CLUSTER_CLASS):
        for manifest in context.bundle.files(artefact):
            if manifest.kind == "ClusterClass":
                yield from _of_class(manifest)


def _of_class(manifest: Manifest) -> Iterator[Problem]:
    defined = {text_of(each, "name") for each in manifest.listing("spec", "variables")}
    patches = manifest.listing("spec", "patches")
    # An extension defines further variables, which only a running class has.
    is_closed = not any(text_of(patch, "external", _DISCOVERY) for patch in patches)
    for path, name, text in _texts(manifest):
        try:
            template = parse_template(text)
        except TemplateError as error:
            line = text.count("\n", 0, error.position) + 1
            where = f" in line {line} of it" if "\n" in text.strip() else ""
            message = f"{manifest}: {name} does not parse: {error}{where}"
            yield Problem(manifest, message, path=path)
            continue
        unknown = sorted(template.variables - defined - {_BUILTIN})
        if unknown and is_closed:
            message = f"{manifest}: {name} reads {listed(unknown)}, which the class does not define"
            yield Problem(manifest, message, path=path, when=_APPLIED)


def _texts(manifest: Manifest) -> Iterator[_Text]:
    """Yield the templates whose text is known: those without a variable of clusterctl."""
    for number, patch in enumerate(manifest.listing("spec", "patches")):
        here: Path = ("spec", "patches", number)
        name = text_of(patch, "name")
        found = [_Text((*here, "enabledIf"), f"enabledIf of patch {name}", _enabled_if(patch))]
        for index, definition in enumerate(list_of(patch, "definitions")):
            for place, operation in enumerate(list_of(definition, "jsonPatches")):
                if text_of(operation, "op") in _WITH_VALUE:
                    path = (*here, "definitions", index, "jsonPatches", place)
                    text = text_of(operation, "valueFrom", "template")
                    found.append(
                        _Text((*path, "valueFrom", "template"), f"a template of patch {name}", text)
                    )
        yield from (each for each in found if each.text and not has_variable(each.text))


def _enabled_if(patch: object) -> str:
    return text_of(mapping_of(patch), "enabledIf")
