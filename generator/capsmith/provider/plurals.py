"""Irregular plurals: data for :func:`capsmith.provider.naming.pluralise`.

Cluster API computes the name of a CRD from its kind with the Go library gobuffalo/flect
(CRD-02), so these tables hold what that library (v1.0.3) answers, its oddities included: they
are not a description of English and must not be improved.
"""

from __future__ import annotations

from typing import Final


def _pairs(table: str) -> tuple[tuple[str, str], ...]:
    """Return ``singular:plural`` words; a word alone has itself as its plural."""
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
"""Words; as endings of longer words the later entries win."""

ALONE: Final = _words("""
    ox louse die axis alias use toe
    """)
"""Those of the words that are no endings of other words."""

ONE_WAY: Final = _words("""
    blues medium ellipsis basis
    """)
"""Those whose plural is not recognised as a plural."""

OTHER_PLURALS: Final = _words("""
    beefs fishes salmons shrimps swines trouts tunas adieus bureaux ganglions lexicons
    mitochondrions stadia aquariums auditoriums symposiums curricula alumnuses cactuses
    focuses locuses nucleuses octopi radiuses corpuses apexes codexes indexes latexes
    vertexes vortexes appendixes radixes helixes buffalos dwarves hooves formulae
    """)
"""Second plurals, recognised as plurals when they are the whole word."""

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
"""Endings, the first match wins; tried after the words."""
