"""Check the templates from which core generates names, by executing them as its webhooks do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from capsmith.judge.checks.apiextensions.model import is_subdomain
from capsmith.manifests.go_template import TemplateError, TokenKind, parse_template, read_tokens
from capsmith.manifests.parse import Manifest, has_variable, text_of
from capsmith.manifests.template_execution import execute_template
from capsmith.manifests.template_functions import ExecutionError
from capsmith.manifests.template_tree import UnsupportedError
from capsmith.yamldoc.compose import Path

Names = Mapping[str, str | Mapping[str, str]]

_OF_ALL: Names = {"cluster": {"name": "cluster"}}
_SAMPLES = ("bcdfg", "24567")
"""Characters that may be random: core uses digits and consonants."""
_MACHINES: Mapping[str, Names] = {
    "MachineDeployment": {"machineSet": {"name": "machineset"}},
    "MachineSet": {"machineSet": {"name": "machineset"}},
    "KubeadmControlPlane": {"kubeadmControlPlane": {"name": "kubeadmcontrolplane"}},
    "KubeadmControlPlaneTemplate": {"kubeadmControlPlane": {"name": "kubeadmcontrolplane"}},
}
"""What the names of Machines may consist of, by the kind that creates them."""
_FIELDS = ("machineNaming", "machineNamingStrategy")
_RANDOM = "{{ .random }}"
"""Core looks for this text, and accepts no other form of it."""
_BUILT_IN = """
    and call eq ge gt html index js le len lt ne not or print printf println slice urlquery
"""
_FUNCTIONS = frozenset(_BUILT_IN.split())
"""Functions of Go's templates; those of sprig are for patches alone."""
_WORDS = "block break continue define else end false if nil range template true with"
_KEYWORDS = frozenset(_WORDS.split())
_LONGEST = 63
_LONGEST_TEMPLATE = 10_000
"""Longer templates, which no name needs and newer API versions refuse, are not executed."""


def find_name_faults(manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """Yield the templates of the names of Machines that core and kubeadm refuse, and why."""
    names = _MACHINES.get(manifest.kind)
    is_template = manifest.kind.endswith("Template")
    path: Path = ("spec", "template", "spec") if is_template else ("spec",)
    for key in _FIELDS if names else ():
        text = text_of(manifest.document, *map(str, path), key, "template")
        if not text or has_variable(text) or names is None:
            continue
        problem = explain_name(text, names)
        if not problem and _RANDOM not in text:
            problem = f"has no {_RANDOM}"
        if problem:
            yield (*path, key, "template"), f"is a template of names {text!r} that {problem}"


def explain_name(text: str, names: Names) -> str:
    """Return why core refuses a template of names; empty if core accepts it or may accept it.

    ``names`` are the values that the template may read, besides those of all templates.
    """
    if len(text) > _LONGEST_TEMPLATE:
        return ""
    try:
        parse_template(text)
    except TemplateError as error:
        return f"does not parse: {error}"
    foreign = _find_functions(text) - _FUNCTIONS
    if foreign:
        return f"calls {', '.join(sorted(foreign))}, which names cannot use"
    # The template may depend on the random characters.
    problems = [_explain_result(text, {**_OF_ALL, **names, "random": each}) for each in _SAMPLES]
    return problems[0] if all(problems) else ""


def _find_functions(text: str) -> set[str]:
    return {each.text for each in read_tokens(text) if each.kind is TokenKind.WORD} - _KEYWORDS


def _explain_result(text: str, names: Names) -> str:
    """Return why a template renders no name with these values; empty if it may render one."""
    try:
        name = execute_template(text, names)
    except UnsupportedError:
        return ""
    except ExecutionError as error:
        return str(error)
    if len(name) > _LONGEST:
        # Core cuts the name, and adds random characters.
        name = name[: _LONGEST - len(_SAMPLES[0])] + _SAMPLES[0]
    return "" if is_subdomain(name) else f"renders {name!r}, which is not a valid name"
