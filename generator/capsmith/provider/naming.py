"""Derive names from other names: kinds' plurals, and Python and YAML spellings.

All functions are pure and accept any string.  :mod:`capsmith.safetext` and
:mod:`capsmith.provider_yaml.forms` define which names are valid.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from capsmith.safetext import Identifier


# Cluster API computes a CRD's name from its kind with the Go library gobuffalo/flect (CRD-02).
# These tables reproduce that library (v1.0.3), including its oddities: they do not describe English
# and must not be improved.
def _pairs(table: str) -> tuple[tuple[str, str], ...]:
    """Parse pairs such as ``singular:plural``; a single word is its own plural."""
    split = (entry.partition(":") for entry in table.split())
    return tuple((singular, plural or singular) for singular, _, plural in split)


def _words(table: str) -> frozenset[str]:
    return frozenset(table.split())


WORDS: Final = _pairs("""
    aircraft beef bison blues chassis deer fish moose police salmon series sheep shrimp
    species swine trout tuna you child:children ox:oxen foot:feet goose:geese man:men
    human:humans louse:lice mouse:mice tooth:teeth woman:women die:dice person:people
    adieu:adieux fabliau:fabliaux bureau:bureaus criterion:criteria ganglion:ganglia
    lexicon:lexica mitochondrion:mitochondria noumenon:noumena phenomenon:phenomena
    taxon:taxa media medium:media stadium:stadiums aquarium:aquaria auditorium:auditoria
    symposium:symposia curriculum:curriculums quota:quotas alumnus:alumni bacillus:bacilli
    cactus:cacti coccus:cocci focus:foci locus:loci nucleus:nuclei octopus:octupuses
    radius:radii syllabus:syllabi corpus:corpora genus:genera alumna:alumnae
    vertebra:vertebrae differentia:differentiae minutia:minutiae vita:vitae larva:larvae
    postcava:postcavae praecava:praecavae uva:uvae apex:apices codex:codices index:indices
    latex:latices vertex:vertices vortex:vortices appendix:appendices radix:radices
    helix:helices axis:axes crisis:crises ellipsis:ellipses genesis:geneses oasis:oases
    thesis:theses testis:testes base:bases basis:bases alias:aliases vedalia:vedalias
    use:uses abuse:abuses cause:causes clause:clauses cruse:cruses excuse:excuses fuse:fuses
    house:houses misuse:misuses muse:muses pause:pauses ache:aches topaz:topazes
    buffalo:buffaloes potato:potatoes tomato:tomatoes equipment information jeans money news
    rice dwarf:dwarfs hoof:hoofs thief:thieves chive:chives hive:hives move:moves
    movie:movies cookie:cookies pretorium:pretoriums agenda:agendas formula:formulas
    shoe:shoes toe:toes graffiti
    """)
"""Irregular words.  They also match as endings of longer words, where later entries win."""

ALONE: Final = _words("""
    ox louse die axis alias use toe
    """)
"""Words that do not match as endings of longer words."""

ONE_WAY: Final = _words("""
    blues medium ellipsis basis
    """)
"""Words with an irregular plural that is not itself recognised as a plural."""

OTHER_PLURALS: Final = _words("""
    beefs fishes salmons shrimps swines trouts tunas adieus bureaux ganglions lexicons
    mitochondrions stadia aquariums auditoriums symposiums curricula alumnuses cactuses
    focuses locuses nucleuses octopi radiuses corpuses apexes codexes indexes latexes
    vertexes vortexes appendixes radixes helixes buffalos dwarves hooves formulae
    """)
"""Alternative plurals. They are recognised only as whole words."""

ENDINGS: Final = _pairs("""
    tive:tives eaf:eaves oaf:oaves afe:aves arf:arves rfe:rves rf:rves lf:lves fe:ves ay:ays
    ey:eys oy:oys quy:quies uy:uys y:ies eau:eaux bula:bulae dula:bulae lula:bulae
    nula:bulae vula:bulae hedron:hedra ium:ia seum:seums eum:ea oum:oa stracum:straca dum:da
    elum:ela ilum:ila olum:ola ulum:ula llum:lla ylum:yla imum:ima ernum:erna gnum:gna
    brum:bra crum:cra terum:tera serum:sera trum:tra antum:anta atum:ata entum:enta etum:eta
    itum:ita otum:ota utum:uta ctum:cta ovum:ova trix:trices iasis:iases mesis:meses
    kinesis:kineses resis:reses gnosis:gnoses opsis:opses ysis:yses ouse:ouses lause:lauses
    us:uses ch:ches io:ios sh:shes ss:sses ez:ezzes iz:izzes tz:tzes zz:zzes ano:anos lo:los
    to:tos oo:oos o:oes x:xes
    """)
"""Regular endings, tried after the irregular words. The first match applies."""


_WORD = re.compile(
    r"[KMGTPE]iB(?![a-z0-9])"  # units: diskGiB
    r"|IPv[46](?![a-z0-9])"
    r"|[A-Z]{2,}s(?![a-z0-9])"  # plurals of abbreviations: podIPs
    r"|[A-Z]+(?![a-z0-9])"
    r"|[A-Z]+(?=[A-Z][a-z0-9])"
    r"|[A-Z]?[a-z0-9]+"
)
_SOFT_KEYWORDS = frozenset({"match", "case", "type", "_"})


@cache
def pluralise(word: str) -> str:
    """Return the lowercase plural of a kind's name, as Cluster API core computes it (CRD-02).

    ``foogateway`` -> ``foogateways``, ``fooproxy`` -> ``fooproxies``.
    """
    if word in _known_plurals():
        return word
    whole = _irregular_plurals().get(word)
    if whole is not None:
        return whole
    for ending, replacement in _rules():
        if word.endswith(ending):
            return word[: len(word) - len(ending)] + replacement
    return word if word.endswith("s") else word + "s"


def split_words(name: str) -> list[str]:
    """Split a name in camelCase, snake_case or kebab-case into its words.

    ``IPAddressPool`` -> ``IP``, ``Address``, ``Pool``.  Digits stay with the preceding word.
    """
    return _WORD.findall(name)


def snake(name: str) -> str:
    """Convert a name to snake_case: ``diskGiB`` -> ``disk_gib``, ``AcmeVM`` -> ``acme_vm``."""
    return "_".join(split_words(name)).lower()


def kebab(name: str) -> str:
    """Convert a name to kebab-case: ``AcmeMachine`` -> ``acme-machine``."""
    return "-".join(split_words(name)).lower()


def camel(name: str) -> str:
    """Convert a name to camelCase: ``acme-machine`` -> ``acmeMachine``."""
    first, *rest = split_words(name) or [""]
    return first.lower() + "".join(word[:1].upper() + word[1:] for word in rest)


def pascal(name: str) -> str:
    """Convert a name to PascalCase: ``acme-machine`` -> ``AcmeMachine``."""
    return "".join(word[:1].upper() + word[1:] for word in split_words(name))


def title(name: str) -> str:
    """Convert a name to a title: ``acme-cloud`` -> ``Acme Cloud``."""
    return " ".join(word[:1].upper() + word[1:] for word in split_words(name))


def name_attribute(name: str) -> Identifier:
    """Convert a name to a snake_case identifier that is not a keyword: ``class`` -> ``class_``."""
    text = snake(name) or "_"
    if text[0].isdigit():
        text = "_" + text
    if keyword.iskeyword(text) or text in _SOFT_KEYWORDS:
        text += "_"
    return Identifier(text)


def name_module(kind: str, words: Iterable[str] = ()) -> Identifier:
    """Return the name of a kind's Python module: ``AcmeMachine`` -> ``acme_machine``.

    ``words`` are words with inner capital letters that must not be split: if ``VSphere`` is among
    them, ``VSphereMachine`` becomes ``vsphere_machine`` instead of ``v_sphere_machine``.
    """
    for word in words:
        kind = kind.replace(word, word.capitalize())
    return name_attribute(kind)


@cache
def _irregular_plurals() -> Mapping[str, str]:
    return dict(WORDS)


@cache
def _known_plurals() -> frozenset[str]:
    both_ways = {p for s, p in WORDS if s not in ONE_WAY}
    return frozenset(both_ways | OTHER_PLURALS)


@cache
def _rules() -> tuple[tuple[str, str], ...]:
    return tuple(_ordered_rules())


def _ordered_rules() -> Iterator[tuple[str, str]]:
    """Yield plural rules; endings that are already plural come before those to replace."""
    # The library that core uses prepends rules while loading, so later words are tried first.
    for singular, plural in reversed(WORDS):
        if singular not in ALONE:
            yield plural, plural
            yield singular, plural
    for singular, plural in ENDINGS:
        yield plural, plural
        yield singular, plural


def name_attributes(names: Iterable[str]) -> dict[str, Identifier]:
    """Return a unique Python identifier for each name. A number is appended to duplicates."""
    found: dict[str, Identifier] = {}
    for name in names:
        chosen, taken, number = name_attribute(name), set(found.values()), 2
        while chosen in taken:
            chosen, number = Identifier(f"{name_attribute(name)}_{number}"), number + 1
        found[name] = chosen
    return found
