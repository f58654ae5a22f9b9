"""Blueprints of an overlay reach no Python and print no text of provider.yaml unchecked."""

from __future__ import annotations

import pytest

from capsmith.blueprint.overlay import Overlay
from capsmith.blueprint.overlay_render import OverlayRenderer
from capsmith.blueprint.plan import BlueprintEntry, BlueprintScope, PlannedFile
from capsmith.blueprint.render import Formatter
from capsmith.findings import Finding
from capsmith.provider.model import Provider
from capsmith.safetext import RelativePath
from capsmith.tree import Owner

OWN = {
    "project/Makefile.jinja": "{% block a %}a\n{% endblock %}{% block b %}b\n{% endblock %}",
    "project/words.jinja": "{% block w %}{{ provider.title | plain }}{% endblock %}",
}


def rendered(
    text: str, provider: Provider, *, target: str = "out.txt", **more: str
) -> tuple[str | None, list[Finding]]:
    """Return the output of an overlay's blueprint, and the findings about it."""
    texts = {"project/mine.jinja": text, **{f"macros/{name}": more[name] for name in more}}
    renderer = OverlayRenderer(Overlay("over", "", texts, ()), OWN, Formatter(None))
    renderer.check()
    entry = BlueprintEntry(
        "mine.jinja", target, BlueprintScope.PROVIDER, (), Owner.GENERATED, False
    )
    made = renderer.render([PlannedFile(entry, RelativePath(target), {"provider": provider})])
    return (made[0].text if made else None), renderer.findings


def refused(text: str, provider: Provider, **more: str) -> Finding:
    made, findings = rendered(text, provider, **more)
    assert made is None
    (finding,) = findings
    assert finding.location.file == "over/project/mine.jinja"
    assert finding.location.line == 1 or finding.id == "overlay-limit"
    assert finding.hint
    assert "\n" not in finding.message
    return finding


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ provider.__class__ }}",
        "{{ provider['__class__'] }}",
        "{{ provider.name.__class__('x') }}",
        "{{ (provider | attr('__class__')) }}",
        "{{ [provider] | map(attribute='__class__') | list }}",
        "{{ [provider] | map(attribute='name.__class__') | list | first }}",
        "{{ [provider] | sort(attribute='__class__') | first }}",
        "{{ [provider] | selectattr('__class__') | list }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ lipsum.__globals__.os.popen('id') }}",
        "{{ joiner('x') }}",
        "{{ range.__init__ }}",
        "{{ dict.fromkeys([1]) }}",
        "{{ dict.mro() }}",
        "{{ self.__init__.__globals__ }}",
        "{{ self._TemplateReference__context }}",
        "{{ namespace.__init__.__globals__ }}",
        "{% macro m() %}{% endmacro %}{{ m._func.__globals__ }}",
        "{% for x in [1] %}{{ loop._iterator }}{% endfor %}",
        "{{ '{0.__class__}'.format(provider) }}",
        "{{ '{p.__class__}'.format_map({'p': provider}) }}",
        "{{ provider.title.format }}",
        "{{ provider.name.encode() }}",
        "{{ provider.title.upper() }}",
        "{{ provider.resources.__getitem__(0) }}",
        "{{ provider.dependencies.count('x') }}",
        "{{ provider.contracts[0].rules.clear() }}",
        "{{ provider.rbac.__add__ }}",
        "{{ [1].append(2) }}",
        "{{ {}.update({'a': 1}) }}",
        "{{ provider() }}",
        "{{ 'x' | attr('upper') }}",
        "{{ [1, 2] | random }}",
        "{{ ('a' * 3) }}",
        "{{ '%s' % provider.title }}",
        "{% import 'os' as os %}{{ os.getcwd() }}",
        "{% include '../../../../etc/passwd' %}",
        "{% extends '/etc/passwd' %}",
    ],
)
def test_no_way_out(text: str, provider: Provider) -> None:
    finding = refused(text, provider)
    assert finding.id in {
        "overlay-forbidden",
        "overlay-undefined",
        "overlay-syntax",
        "overlay-not-found",
        "overlay-unsafe-text",
        "overlay-render",
    }
    assert "root:" not in finding.message
    assert " object at 0x" not in finding.message


def test_the_attribute_itself_is_what_is_refused(provider: Provider) -> None:
    """So that the tests above fail for the reason that they name."""
    for text in ("{{ provider.__class__ }}", "{{ provider['__class__'] }}"):
        assert "unsafe" in refused(text, provider).message
    assert refused("{{ provider.title.upper() }}", provider).id == "overlay-forbidden"


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(1000000000) %}x{% endfor %}",
        "{% for a in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
        "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include 'project/mine.jinja' %}{% include 'project/mine.jinja' %}",
        "{% extends 'project/mine.jinja' %}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ provider" + ".a" * 50_000 + " }}",
    ],
)
def test_endless_recursion_and_loops_are_findings(text: str, provider: Provider) -> None:
    finding = refused(text, provider)
    assert finding.id in {"overlay-limit", "overlay-render", "overlay-syntax"}


@pytest.mark.parametrize(
    "text",
    [
        "{{ provider.title }}",
        "{{ provider.title ~ '' }}",
        "{{ provider.title | trim }}",
        "{{ [provider.title] | first }}",
        "{{ ['a', 'b'] | join(provider.title) }}",
        "{{ 'a' | comment(provider.title) }}",
        "{{ provider | kind_of('nothing', provider.title) }}",
        "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(provider.title) }}",
        "{% set x %}{{ provider.title }}{% endset %}{{ x }}",
        "{% filter trim %}{{ provider.name }}{% endfilter %}",
        "{% call dict(x=provider.title) %}{% endcall %}",
        "{% autoescape true %}{{ provider.title }}{% endautoescape %}",
        "{{ {provider.title: 1} }}",
    ],
)
def test_text_of_the_description_needs_a_literal_filter(text: str, provider: Provider) -> None:
    finding = refused(text, provider)
    assert finding.id in {"overlay-unsafe-text", "overlay-syntax", "overlay-render"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ provider.name }}", "acme\n"),
        ("{{ provider.title | py_literal }}", "'Acme'\n"),
        ("{% for c in provider.components %}{{ c.type }} {{ loop.index }}{% endfor %}", None),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m('a') }}{{ m(3) }}", "<a><3>\n"),
        ("{% set x %}{{ provider.name }}!{% endset %}{{ x }}", "acme!\n"),
        ("{{ 2 + 3 * 4 - 1 }}", "13\n"),
        ("{% if provider.component('infrastructure') %}yes{% endif %}", "yes\n"),
        ("{{ provider.image.split('/')[0] | plain }}", None),
        ("{% extends 'capsmith:project/words.jinja' %}{% block w %}[{{ super() }}]{% endblock %}",
         "[Acme]\n"),
        ("{% extends 'capsmith:project/Makefile.jinja' %}{% block b %}c\n{% endblock %}", "a\nc\n"),
        ("{% import 'macros/helpers' as h %}{{ h.greet(provider.name) }}", "hello acme\n"),
        ("static\n", "static\n"),
    ],
)  # fmt: skip
def test_what_blueprints_are_for(text: str, expected: str | None, provider: Provider) -> None:
    helpers = "{% macro greet(x) %}hello {{ x }}{% endmacro %}"
    made, findings = rendered(text, provider, helpers=helpers)
    assert findings == []
    assert made
    assert expected in (None, made)


def test_errors_are_reported_by_line_and_all_at_once(provider: Provider) -> None:
    texts = {
        "project/a.jinja": "one\n{{ nobody }}\n",
        "project/b.jinja": "one\ntwo\n{% if %}\n",
        "project/c.jinja": "{% import 'macros/m' as m %}\n{{ m.f() }}\n",
        "macros/m": "{% macro f() %}\n\n{{ provider.title }}{% endmacro %}\n",
    }
    renderer = OverlayRenderer(Overlay("over", "", texts, ()), OWN, Formatter(None))
    renderer.check()
    names = ("a.jinja", "b.jinja", "c.jinja")
    entries = [
        BlueprintEntry(n, n, BlueprintScope.PROVIDER, (), Owner.GENERATED, False) for n in names
    ]
    context = {"provider": provider}
    files = [PlannedFile(each, RelativePath(each.target), context) for each in entries]
    assert renderer.render([*files, *files]) == []
    assert {(str(f.location), f.id) for f in renderer.findings} == {
        ("over/project/a.jinja:2:1", "overlay-undefined"),
        ("over/project/b.jinja:3:1", "overlay-syntax"),
        ("over/macros/m:3:1", "overlay-undefined"),
    }


def test_python_that_is_none_and_control_characters(provider: Provider) -> None:
    made, (finding,) = rendered("x = (\n", provider, target="out.py")
    assert (made, finding.id) == (None, "overlay-python")
    made, findings = rendered("x = {  'a':1 }", provider, target="out.py")
    assert (made, findings) == ('x = {"a": 1}\n', [])
    for text in ("a\x07", "{{ '\\u0000' }}", "{{ '\\ud800' }}", "{{ 'a\\r' }}"):
        made, (finding,) = rendered(text, provider)
        assert (made, finding.id) == (None, "overlay-render")
        assert "U+" in finding.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{% block aa %}x{% endblock %}", "Did you mean `a`?"),
        ("{% block nothing_like_it %}x{% endblock %}", "Use one of: a, b."),
        ("lost\n", "Move it into a block."),
        ("{{ provider.name }}", "Move it into a block."),
    ],
)
def test_text_that_jinja_would_drop_is_reported(text: str, said: str, provider: Provider) -> None:
    _, (finding,) = rendered("{% extends 'capsmith:project/Makefile.jinja' %}\n" + text, provider)
    assert (finding.id, finding.location.line) == ("overlay-block", 2)
    assert finding.hint == said


def test_a_block_inside_a_block_may_be_new(provider: Provider) -> None:
    text = (
        "{% extends 'capsmith:project/Makefile.jinja' %}\n"
        "{% block a %}{% block inner %}x\n{% endblock %}{% endblock %}\n{# said #}\n"
    )
    assert rendered(text, provider) == ("x\nb\n", [])
