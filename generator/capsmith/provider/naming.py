"""Names that follow from other names: plurals of kinds, Python and YAML spellings.

Pure text to text.  Valid names are defined in :mod:`capsmith.safetext` and
:mod:`capsmith.provider_yaml.forms`; this module never refuses.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from functools import cache

from capsmith.provider import plurals
from capsmith.safetext import Identifier

_WORD = re.compile(
    r"[KMGTPE]iB(?![a-z0-9])"  # units: diskGiB
    r"|[A-Z]{2,}s(?![a-z0-9])"  # plurals of abbreviations: podIPs
    r"|[A-Z]+(?![a-z0-9])"
    r"|[A-Z]+(?=[A-Z][a-z0-9])"
    r"|[A-Z]?[a-z0-9]+"
)
_SOFT_KEYWORDS = frozenset({"match", "case", "type", "_"})


@cache
def pluralise(word: str) -> str:
    """Return the plural of a lower-case kind, as Cluster API core computes it (CRD-02).

    ``foogateway`` -> ``foogateways``, ``fooproxy`` -> ``fooproxies``.
    """
    if word in _known_plurals():
        return word
    whole = dict(plurals.WORDS).get(word)
    if whole is not None:
        return whole
    for ending, replacement in _rules():
        if word.endswith(ending):
            return word[: len(word) - len(ending)] + replacement
    return word if word.endswith("s") else word + "s"


def words(name: str) -> list[str]:
    """Return the words of a camelCase, snake_case or kebab-case name.

    ``IPAddressPool`` -> ``IP``, ``Address``, ``Pool``; digits stay with their word.
    """
    return _WORD.findall(name)


def snake(name: str) -> str:
    """Return snake_case: ``diskGiB`` -> ``disk_gib``, ``AcmeMachine`` -> ``acme_machine``."""
    return "_".join(words(name)).lower()


def kebab(name: str) -> str:
    """Return kebab-case: ``AcmeMachine`` -> ``acme-machine``."""
    return "-".join(words(name)).lower()


def camel(name: str) -> str:
    """Return camelCase: ``acme-machine`` -> ``acmeMachine``."""
    first, *rest = words(name) or [""]
    return first.lower() + "".join(word[:1].upper() + word[1:] for word in rest)


def pascal(name: str) -> str:
    """Return PascalCase: ``acme-machine`` -> ``AcmeMachine``."""
    return "".join(word[:1].upper() + word[1:] for word in words(name))


def title(name: str) -> str:
    """Return words for a title: ``acme-cloud`` -> ``Acme Cloud``."""
    return " ".join(word[:1].upper() + word[1:] for word in words(name))


def attribute(name: str) -> Identifier:
    """Return a snake_case Python name that is not a keyword: ``class`` -> ``class_``."""
    text = snake(name) or "_"
    if text[0].isdigit():
        text = "_" + text
    if keyword.iskeyword(text) or text in _SOFT_KEYWORDS:
        text += "_"
    return Identifier(text)


@cache
def _known_plurals() -> frozenset[str]:
    both_ways = {p for s, p in plurals.WORDS if s not in plurals.ONE_WAY}
    return frozenset(both_ways | plurals.OTHER_PLURALS)


@cache
def _rules() -> tuple[tuple[str, str], ...]:
    return tuple(_ordered_rules())


def _ordered_rules() -> Iterator[tuple[str, str]]:
    """Each plural ending stays as it is; that is tried before its singular is replaced."""
    for singular, plural in reversed(plurals.WORDS):
        if singular not in plurals.ALONE:
            yield plural, plural
            yield singular, plural
    for singular, plural in plurals.ENDINGS:
        yield plural, plural
        yield singular, plural


def attributes(names: Iterable[str]) -> dict[str, Identifier]:
    """Return the attribute of each name; of two that would be alike, the second has a number."""
    found: dict[str, Identifier] = {}
    for name in names:
        chosen, taken, number = attribute(name), set(found.values()), 2
        while chosen in taken:
            chosen, number = Identifier(f"{attribute(name)}_{number}"), number + 1
        found[name] = chosen
    return found
