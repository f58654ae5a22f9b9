"""The page of all findings: what each id means, and how to mend it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from website.source_findings import Reported, reported
from website.sources import ROOT

_HEAD = """# Findings

Every problem that capsmith reports has an id, which stays the same between releases: a rule of the
[contract](../contracts/README.md), such as `IC-05`, or one of the ids below.  An ellipsis is what a
message quotes.  Errors make the exit code 1, or 2 if the input cannot be read; warnings and
information do not.
"""
_MEANINGS = {
    "answer-unusable": "an answer is too long, or not printable",
    "base-altered": "a file in `.capsmith/base/` was edited: restore it from version control",
    "base-missing": "a file in `.capsmith/base/` is missing: restore it from version control",
    "blueprint-manifest": "`manifest.yaml` of the blueprints is not valid",
    "blueprint-plan": "a row of `manifest.yaml` of the blueprints gives no path",
    "components-changed": "sections are combined differently than before, which requires steps in"
    " management clusters",
    "contract-data": "capsmith's own data about the contract were edited, or are incomplete",
    "cookiecutter-config": "cookiecutter's user configuration cannot be read",
    "import-added": "the generated CRD has an addition that does not affect existing objects",
    "import-changed": "the contract has the field, with other limits or more requirements",
    "import-lost": "the generated CRD lacks it, or `provider.yaml` cannot express it",
    "nothing-to-abort": "no unfinished update to abort: run `capsmith update`",
    "nothing-to-continue": "no unfinished update to continue: run `capsmith update`",
    "output-not-regular": "a folder, link or device is in the place of a file",
    "overlay-forbidden": "a blueprint calls what the sandbox forbids: use names, data and filters",
    "overlay-limit": "a blueprint exceeds the limits of time or size: shorten it",
    "overlay-not-found": "no such blueprint to extend: prefix those of capsmith with `capsmith:`",
    "overlay-python": "a blueprint renders Python that does not parse",
    "overlay-render": "a blueprint cannot be rendered",
    "overlay-syntax": "a blueprint is not valid Jinja",
    "overlay-undefined": "a blueprint uses a name that has no value",
    "overlay-unsafe-text": "text of `provider.yaml` needs a literal filter, such as `to_yaml`",
    "release-yaml": "a file of the release is not valid YAML",
    "schema-rule-unchecked": "the rule in CEL could not be compiled as the API server does it",
    "spec-not-one-of": "the value is not one of the allowed ones; the hint has the closest one",
    "update-concluded": "the update is finished, or the previous state is restored",
    "verify-config": "the configuration of `capsmith verify` is not valid",
}
"""Findings whose id or message is made at run time."""
_GROUPS = {
    "YAML": ("yaml",),
    "Files that are read": ("input", "file", "answer", "cookiecutter", "replay"),
    "Keys of provider.yaml": ("spec", "section", "component", "components", "credentials",
                              "dependency", "flavor", "group", "namespace", "package", "rbac",
                              "release", "clusterctl", "image", "runtime", "contract", "api"),
    "Kinds": ("kind", "short", "feature", "template", "column", "version", "watch", "webhooks",
              "bootstrap", "pool", "part", "resource", "finalizer", "controlplane"),
    "Fields and their schemas": ("field", "schema"),
    "Generate and update": ("output", "update", "scaffold", "lock", "base", "mine", "restore",
                            "pending", "unfinished", "abort", "run", "repository", "git",
                            "provider", "nothing", "eject", "keep", "drop"),
    "Blueprints": ("blueprint", "overlay"),
    "Import": ("import",),
    "Verify and conformance": ("verify", "manifest", "conformance", "process", "tools",
                               "deployment", "reference", "rule"),
}  # fmt: skip


def findings_page() -> str:
    """Return the page as Markdown."""
    by_id: dict[str, list[Reported]] = defaultdict(list)
    for each in reported(ROOT / "generator" / "capsmith"):
        by_id[each.id].append(each)
    for id, meaning in _MEANINGS.items():
        severities = {each.severity for each in by_id[id]} or {_severity(id)}
        hints = {each.hint for each in by_id[id]} or {""}
        by_id[id] = [Reported(id, severity, meaning, min(hints)) for severity in severities]
    for each in _examples():
        if not any(known.message.strip("…") for known in by_id[each.id]):
            by_id[each.id] = [each]
    parts = [_HEAD]
    for title, ids in _grouped(by_id).items():
        parts.append(
            f"\n## {title}\n\n| Id | Severity | Meaning, and how to mend it |\n|---|---|---|\n"
        )
        parts += [_row(id, by_id[id]) for id in ids]
    return "".join(parts)


def _severity(id: str) -> str:
    return {"import-added": "info", "import-changed": "warning"}.get(id, "error")


def _examples() -> Iterable[Reported]:
    """Yield the findings in descriptions of ``tests/invalid``, for messages made at run time."""
    line = re.compile(r"[^ ]+: (\w+) ([a-z][\w-]+): (.*)")
    for file in sorted((ROOT / "tests" / "invalid").glob("*/findings.txt")):
        for match in line.finditer(file.read_text(encoding="utf-8")):
            yield Reported(match[2], match[1], match[3], "")


def _grouped(ids: Iterable[str]) -> dict[str, list[str]]:
    titles = {prefix: title for title, prefixes in _GROUPS.items() for prefix in prefixes}
    grouped: dict[str, list[str]] = {title: [] for title in (*_GROUPS, "Others")}
    for id in sorted(ids):
        grouped[titles.get(id.split("-")[0], "Others")].append(id)
    return {title: found for title, found in grouped.items() if found}


def _row(id: str, places: list[Reported]) -> str:
    severities = ", ".join(sorted({each.severity for each in places}))
    known = [each for each in places if each.message.strip("… ")] or places
    meanings = []
    for message in dict.fromkeys(each.message for each in known):
        hints = dict.fromkeys(each.hint for each in known if each.message == message)
        shown = " ".join(_escaped(hint) for hint in hints if hint.strip("… "))
        meanings.append(f"{_escaped(message)}{'. *' + shown + '*' if shown else ''}")
    return f'| <a id="{id}"></a>`{id}` | {severities} | {"<br>".join(meanings)} |\n'


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is, but for code."""
    pieces = re.split(r"(`[^`]+`)", " ".join(text.split()))
    pieces[::2] = [re.sub(r"([<>*_\[\]{}\\])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces).replace("|", "\\|")
