"""The page of the field, from ``releases.json`` and ``reviews.yaml``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from website.field.model import (
    FieldFinding,
    FieldRelease,
    FieldStep,
    Opinion,
    Origin,
    Provider,
    Review,
    load_providers,
    load_releases,
    load_reviews,
)

_GITHUB = "https://github.com"
_HEAD = """# The state of the field

What [`capsmith verify`](../how-to/verify.md) says of the newest releases of public Cluster API
providers: which contracts they serve, what breaks on core's releases from {first} to {last}, and
which steps are left before core v1.16, announced for April 2027, ends support for contract v1beta1.

The page is meant as a courtesy to maintainers.  It does not rate providers: much of what it lists
concerns uses that not every provider has in mind, and the main branch may be ahead of a release.

- Each release has its date, the day on which it was judged, and the commands that repeat this.
- Each finding below was compared with the source of the release by hand.  Arguable findings, and
  new ones that have not been compared yet, are not on the page.
- Where the files of a release were not downloaded, they are built from the sources at the tag, with
  `kubectl kustomize`.  What a release workflow adds, such as image names and templates, is not
  judged then.
- A step is a change of Cluster API's migration pages that the manifests do not show yet.  What only
  code can do, such as setting a condition, is not counted.

**Is something wrong, out of date or unfair?**  Open an issue of capsmith with the name of the
provider, or change its entries in `website/field/reviews.yaml` or `website/field/providers.yaml`.
A disputed finding leaves the page first and is discussed afterwards.  To be left out, ask in the
same way.
"""
_CLASSES = {"breaks": "breaks", "breaks-when": "breaks under a condition"}


def field_page() -> str:
    """Return the page as Markdown."""
    return render_page(load_providers(), load_releases(), load_reviews())


def render_page(
    providers: Sequence[Provider], releases: Sequence[FieldRelease], reviews: Sequence[Review]
) -> str:
    """Return the page about these releases, in the order of the providers."""
    by_repository = {release.repository: release for release in releases}
    known = [(each, by_repository.get(each.repository)) for each in providers]
    shown = [(provider, _select(release, reviews)) for provider, release in known if release]
    judged = [(provider, release) for provider, release in shown if not release.record.problem]
    cores = [core for _, release in judged for core in release.cores] or ["v1.10"]
    first, last = (choose(cores, key=_order) for choose in (min, max))
    head = _HEAD.format(first=first, last=f"{last}, which is main")
    parts = [head, *_table(judged), *(_section(*each) for each in judged)]
    return "\n".join([*parts, *_list_unjudged(shown)])


def _select(release: FieldRelease, reviews: Sequence[Review]) -> FieldRelease:
    """Return the release with the findings that were reviewed, and without arguable steps."""

    def find(rule: str, message: str) -> Review | None:
        covering = (each for each in reviews if each.covers(release.repository, rule, message))
        return next(covering, None)

    def adopt(finding: FieldFinding) -> FieldFinding | None:
        review = find(finding.rule, finding.message)
        if review is None or review.opinion is not Opinion.FACT:
            return None
        # A condition that a person added holds for this provider, whatever the rule says.
        return finding._replace(effect="breaks-when", when=review.when) if review.when else finding

    def is_arguable(step: FieldStep) -> bool:
        review = find(step.rule, step.action)
        return review is not None and review.opinion is Opinion.ARGUABLE

    arguable = [step for step in release.left if is_arguable(step)]
    return release._replace(
        steps=release.steps - len(arguable),
        left=tuple(step for step in release.left if step not in arguable),
        findings=tuple(each for each in map(adopt, release.findings) if each),
    )


def _table(judged: Sequence[tuple[Provider, FieldRelease]]) -> Iterator[str]:
    yield "## At a glance\n"
    yield "| Provider | Release | Date | Contracts | Breaks | Under a condition | Steps left |"
    yield "|---|---|---|---|---|---|---|"
    for provider, release in judged:
        effects = Counter(finding.effect for finding in release.findings)
        cells = [
            f"[{_escape(provider.name)}](#{_anchor(provider)})",
            _escape(release.version),
            release.record.date,
            ", ".join(map(_escape, _list_contracts(release))) or "-",
            *(str(effects[effect] or "none") for effect in _CLASSES),
            f"{len(release.left)} of {release.steps}" if release.left else "none",
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _list_contracts(release: FieldRelease) -> list[str]:
    """Return the contracts that core finds in labels; without labels, that of the series."""
    return sorted(release.labels) or [release.series] * bool(release.series)


def _section(provider: Provider, release: FieldRelease) -> str:
    url = f"{_GITHUB}/{provider.repository}"
    labels = ", ".join(map(_escape, release.labels)) or "none"
    lines = [
        f"## {_escape(provider.name)} {{#{_anchor(provider)}}}\n",
        f"[{_escape(provider.repository)}]({url}) {_escape(release.version)} of"
        f" {release.record.date}, judged on {release.judged} by capsmith {release.capsmith} for"
        f" core {release.cores[0]} to {release.cores[-1]}.",
        f"Contracts in the labels of its CRDs: {labels}; contract of its release series:"
        f" {_escape(release.series) or 'none'}.\n",
        *_render_omission(provider, release),
        *_render_findings(release),
        *_render_steps(release),
        *_render_commands(release),
    ]
    return "\n".join(lines)


def _render_omission(provider: Provider, release: FieldRelease) -> Iterator[str]:
    if provider.omitted and release.record.origin is Origin.TAG:
        yield f"Judged without {_escape(provider.omitted)}, which the release includes.\n"


def _render_findings(release: FieldRelease) -> Iterator[str]:
    if not release.findings:
        yield "Nothing is known that breaks.\n"
        return
    for finding in release.findings:
        span = finding.cores[0] + (f" to {finding.cores[-1]}" if len(finding.cores) > 1 else "")
        yield f"- **{_CLASSES[finding.effect]}**, core {span}: {_escape(finding.message)}"
        yield f"  ([{finding.rule}]({finding.link}), {_escape(finding.file)} line {finding.line})."
        yield f"  {_escape(finding.consequence)}"
        if finding.when:
            yield f"  *When {_escape(finding.when)}.*"
    yield ""


def _render_steps(release: FieldRelease) -> Iterator[str]:
    if not release.left:
        yield "No step to contract v1beta2 is left.\n"
        return
    kinds = Counter(step.kind for step in release.left)
    counts = ", ".join(f"{_escape(kind)}: {count}" for kind, count in kinds.items())
    count = len(release.left)
    yield f"Steps to contract v1beta2 that are left: {count} of {release.steps} ({counts}).\n"


def _render_commands(release: FieldRelease) -> Iterator[str]:
    version = release.version
    ignored = " --ignore CC-27" if release.record.origin is Origin.TAG else ""
    commands = [
        *release.record.commands,
        f"capsmith verify {version}{ignored}",
        f"capsmith verify {version} --target core=v1.16",
    ]
    yield '<details markdown="1"><summary>Commands</summary>\n'
    yield "\n".join(["```sh", *commands, "```\n"])
    yield "</details>\n"


def _list_unjudged(shown: Sequence[tuple[Provider, FieldRelease]]) -> Iterator[str]:
    unjudged = [(provider, release) for provider, release in shown if release.record.problem]
    if unjudged:
        yield "## Not judged\n"
    for provider, release in unjudged:
        problem = _escape(release.record.problem)
        yield f"- {_escape(provider.name)} {_escape(release.version)}: {problem}."


def _anchor(provider: Provider) -> str:
    return re.sub(r"[^a-z0-9]+", "-", provider.repository.lower()).strip("-")


def _order(core: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", core)]


def _escape(text: str) -> str:
    """Return text of a release in one line, which Markdown and HTML show as it is."""
    words = " ".join(text.split())
    line = "".join(character if character.isprintable() else "?" for character in words)
    return re.sub(r"([\\`*_{}\[\]<>|&])", lambda match: f"&#{ord(match[0])};", line)
