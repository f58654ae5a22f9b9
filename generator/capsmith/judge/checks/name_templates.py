"""Check the templates from which core generates names, by rendering them as core's webhooks do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.judge.checks.apiextensions.model import is_subdomain
from capsmith.manifests.go_template import TemplateError, TokenKind, parse_template, read_tokens
from capsmith.manifests.parse import Manifest, has_variable, mapping_of, text_of
from capsmith.yamldoc.compose import Path

Names = Mapping[str, str | Mapping[str, str]]

_OF_ALL: Names = {"cluster": {"name": "cluster"}, "random": "abcde"}
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
_ACTION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_PLAIN = re.compile(r"\{\{[ \t\r\n]*((?:\.\w+)+)[ \t\r\n]*\}\}")
_LONGEST = 63
"""Core cuts longer names, and adds random characters."""


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
    """Return why a template renders no name; empty if it may render one.

    ``names`` are the values that the template may read, besides those of all templates.
    """
    try:
        unknown = parse_template(text).variables - _OF_ALL.keys() - names.keys()
    except TemplateError as error:
        return f"does not parse: {error}"
    if unknown:
        return f"reads {', '.join(sorted(unknown))}, which names do not have"
    foreign = _find_functions(text) - _FUNCTIONS
    if foreign:
        return f"calls {', '.join(sorted(foreign))}, which names cannot use"
    return _render({**_OF_ALL, **names}, text)


def _find_functions(text: str) -> set[str]:
    return {each.text for each in read_tokens(text) if each.kind is TokenKind.WORD} - _KEYWORDS


def _render(names: Names, text: str) -> str:
    rendered = text
    for match in _ACTION.finditer(text):
        plain = _PLAIN.fullmatch(match[0])
        if plain is None:
            # A part of the name is not known, so only the other characters can be wrong.
            rest = _ACTION.sub("", text)
            return "" if re.fullmatch("[a-z0-9.-]*", rest) else "has characters that no name has"
        value: Any = names
        for step in plain[1][1:].split("."):
            value = mapping_of(value).get(step)
        if not isinstance(value, str):
            return f"reads {plain[1][1:]}, which names do not have"
        rendered = rendered.replace(match[0], value, 1)
    return "" if is_subdomain(rendered[:_LONGEST]) else f"renders {rendered!r}, which is no name"
