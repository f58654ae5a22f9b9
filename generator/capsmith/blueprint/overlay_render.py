"""Render an overlay for a provider in Jinja's sandbox, with findings instead of exceptions.

The overlay is in the author's repository, so the sandbox protects against mistakes that a review
may miss, not against an attacker.  Values provide no access to Python, calls have no side effects,
and the same overlay results in the same output everywhere.  Run time and output size are not
limited.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from jinja2 import (
    FunctionLoader,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
    UndefinedError,
    nodes,
)
from jinja2.exceptions import SecurityError
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range
from jinja2.utils import Namespace

from capsmith.blueprint.filters import FILTERS
from capsmith.blueprint.overlay import PROJECT, Overlay, OverlayRow
from capsmith.blueprint.plan import PlannedFile, plan_entry
from capsmith.blueprint.provider_filters import PROVIDER_FILTERS
from capsmith.blueprint.render import RULES, Formatter, LiteralsAreSafe, UnsafeText, is_static, tidy
from capsmith.errors import BlueprintError
from capsmith.findings import Finding, Location
from capsmith.output.runtime import FOLDER, Runtime, is_vendored
from capsmith.output.topology import Topology
from capsmith.printable import replace_unprintable
from capsmith.provider.model import Component, Provider
from capsmith.safetext import SafeText
from capsmith.tree import GeneratedFile
from capsmith.yamldoc.quote import clip

ORIGINAL = "capsmith:"
"""Prefix that names a built-in blueprint: ``capsmith:project/Makefile.jinja``."""
_GLOBALS: Mapping[str, Any] = {"range": safe_range, "dict": dict, "namespace": Namespace}
# An allow-list: a new method of a model or of Python must not become callable by itself.
_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset({"endswith", "removeprefix", "removesuffix", "split", "startswith"}),
    dict: frozenset({"get", "items", "keys", "values"}),
    MappingProxyType: frozenset({"get", "items", "keys", "values"}),
    LoopContext: frozenset({"changed", "cycle"}),
    Provider: frozenset({"component"}),
    Component: frozenset({"role"}),
    Topology: frozenset({"pool_variables"}),
}
_LONG_INTEGER = re.compile(r"[0-9][0-9_]{4000,}")
_CALLABLE = (Macro, BlockReference, LoopContext, Undefined)


class OverlayEnvironment(ImmutableSandboxedEnvironment):
    """The sandboxed Jinja environment in which an author's own blueprints are rendered."""

    code_generator_class = LiteralsAreSafe
    safe_literal: Callable[[str], SafeText] = SafeText

    def __init__(self, load: Callable[[str], tuple[str, str, None] | None]) -> None:
        # The optimizer would turn results of filters and operators into literals, which are safe.
        super().__init__(loader=FunctionLoader(load), optimized=False, **RULES)
        # Jinja's other globals are left out: `lipsum` is random, and `cycler` and `joiner` have
        # state.
        self.globals = dict(_GLOBALS)
        self.filters.update(FILTERS)
        self.filters.update(PROVIDER_FILTERS)
        del self.filters["random"]  # the same input has to give the same tree
        del self.filters["attr"]  # it reaches methods, which are not data

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        try:
            return super()._parse(source, name, filename)
        except ValueError as error:  # of int(), from which the lexer takes no place along
            long = _LONG_INTEGER.search(source)
            line = source.count("\n", 0, long.start()) + 1 if long else 1
            message = "an integer has too many digits"
            raise TemplateSyntaxError(message, line, name, filename) from error

    def concat(self, pieces: Iterable[str]) -> SafeText:
        """Concatenate pieces of output. Each was checked for safety when it was printed."""
        return SafeText("".join(pieces))

    def is_safe_callable(self, obj: Any) -> bool:
        """Return whether ``obj`` is on the list of callables without side effects."""
        if isinstance(obj, _CALLABLE) or obj in _GLOBALS.values():
            return True
        # For a bound method, the type of its object decides, because any class may define a method
        # of the same name.
        owner = getattr(obj, "__self__", None)
        names = (names for type_, names in _METHODS.items() if isinstance(owner, type_))
        return getattr(obj, "__name__", "") in next(names, ())

    def call(self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call an allowed callable.

        Raises SecurityError for any other callable.
        """
        if not self.is_safe_callable(__obj):
            # Jinja's message contains an address, which differs between runs.
            name = getattr(__obj, "__name__", type(__obj).__name__)
            raise SecurityError(f"`{name}` cannot be called in an overlay")
        return super().call(__context, __obj, *args, **kwargs)


def make_loader(
    own: Mapping[str, str], overlay: Mapping[str, str], where: str
) -> Callable[[str], tuple[str, str, None] | None]:
    """Return a Jinja loader that prefers the overlay's blueprints to capsmith's.

    ``overlay`` and ``own`` hold their sources by path.  A name with the prefix ``capsmith:`` always
    refers to capsmith's blueprint.  ``where`` is the overlay's folder as shown in findings.
    """

    def load(name: str) -> tuple[str, str, None] | None:
        # A blueprint that replaces a built-in one can extend it only with the prefix, because
        # its own name refers to itself.
        if name in overlay:
            return overlay[name], f"{where}/{name}", None
        bare = name.removeprefix(ORIGINAL)
        if bare not in own:
            raise TemplateNotFound(name, f"no such blueprint: {name}")
        return own[bare], ORIGINAL + bare, None

    return load


_RESERVED = re.compile(r"provider\.yaml|\.capsmith(/.*)?|(.*/)?\.git(/.*)?", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_LIMITS = (RecursionError, MemoryError, OverflowError)
_KINDS: tuple[tuple[str, tuple[type[BaseException], ...], str], ...] = (
    ("overlay-limit", _LIMITS, "Shorten the blueprint: it exceeds the limits."),
    ("overlay-forbidden", (SecurityError,), "Use names, data and filters only."),
    ("overlay-unsafe-text", (UnsafeText,), "Append a literal filter, such as `to_yaml`."),
    ("overlay-syntax", (TemplateSyntaxError, SyntaxError), "See the documentation of Jinja."),
    ("overlay-not-found", (TemplateNotFound,), f"Prefix capsmith's own with `{ORIGINAL}`."),
    ("overlay-undefined", (UndefinedError,), "Look up the names in capsmith's blueprint."),
)
_BROKEN = "Look up how capsmith's blueprint of the same path uses these names."


def plan_rows(
    overlay: Overlay, provider: Provider, runtime: Runtime, own: Iterable[str]
) -> tuple[list[PlannedFile], list[Finding]]:
    """Return the files that the overlay's rows add to capsmith's, and findings.

    ``own`` are the paths of all files that capsmith generates.

    All findings have the id ``overlay-target``.
    """
    files: list[PlannedFile] = []
    findings: list[Finding] = []
    # Compared in lower case, because some file systems treat two such paths as one file.
    taken = {path.lower() for path in own}
    for row in overlay.rows:
        try:
            for file in plan_entry(row.entry, provider, runtime):
                problem = _problem_of_target(file.path, overlay, taken)
                if problem:
                    findings.append(_finding_on_row(row, f"{file.path} {problem}"))
                taken.add(str(file.path).lower())
                files.append(file)
        except BlueprintError as error:
            findings.append(_finding_on_row(row, error.finding.message))
    return files, findings


def _problem_of_target(path: str, overlay: Overlay, taken: set[str]) -> str:
    if _RESERVED.fullmatch(path):
        return "cannot be generated"
    if is_vendored(path.lower()) or f"{FOLDER}/".startswith(f"{path.lower()}/"):
        return "belongs to the runtime library"
    if overlay.named and f"{path}/".startswith(f"{overlay.named}/"):
        return "is inside the overlay"
    name = path.lower()
    if name in taken:
        return "is already generated"
    parents = {name[: found.start()] for found in re.finditer("/", name)}
    if parents & taken or any(other.startswith(f"{name}/") for other in taken):
        return "would be both a file and a folder"
    return ""


def _finding_on_row(row: OverlayRow, message: str) -> Finding:
    hint = "Use another target, or remove the row."
    return Finding("overlay-target", message, row.location, hint=hint)


class OverlayRenderer:
    """Renders an overlay's blueprints. Errors become findings, and rendering continues."""

    def __init__(self, overlay: Overlay, own: Mapping[str, str], formatter: Formatter) -> None:
        self._overlay = overlay
        self._own = own
        self._formatter = formatter
        self._environment = OverlayEnvironment(make_loader(own, overlay.sources, overlay.where))
        self._broken: set[str] = set()
        self.findings: list[Finding] = []

    def check(self) -> None:
        """Compile every blueprint in the overlay, even those that this provider does not need."""
        for name in self._overlay.sources:
            try:
                self._environment.get_template(name)
                self.findings += self._text_without_effect(name)
            except Exception as error:  # Any exception here is caused by this blueprint.
                self._report(name, error)

    def render(self, files: Iterable[PlannedFile]) -> list[GeneratedFile]:
        """Render the planned files, leaving out files whose blueprint is broken."""
        rendered = (self._render(file) for file in files)
        return [file for file in rendered if file is not None]

    def _render(self, file: PlannedFile) -> GeneratedFile | None:
        name = PROJECT + file.entry.source
        if name in self._broken:
            return None
        try:
            text = self._text(file, name)
        except Exception as error:  # as above: filters and black may raise anything
            self._report(name, error)
            return None
        return GeneratedFile(file.path, text, file.entry.owner, file.entry.executable)

    def _text(self, file: PlannedFile, name: str) -> str:
        text = self._overlay.sources[name]
        if not is_static(text):
            text = tidy(self._environment.get_template(name).render(file.context))
        # Lone surrogates cannot be written to a file, and control characters can hide text in a
        # review.
        if found := _CONTROL.search(text):
            raise ValueError(f"it outputs the character U+{ord(found[0]):04X}")
        if file.path.endswith(".py"):
            text = self._formatter.format(text, name)
        return text

    def _text_without_effect(self, name: str) -> Iterator[Finding]:
        """Yield findings on text outside blocks, and on blocks that the original lacks."""
        tree = self._environment.parse(self._overlay.sources[name])
        parents = list(tree.find_all(nodes.Extends))
        if not parents or not isinstance(parents[0].template, nodes.Const):
            return
        blocks = self._blocks(str(parents[0].template.value), set())
        for node in tree.body:
            if isinstance(node, nodes.Block) and node.name not in blocks:
                near = difflib.get_close_matches(node.name, blocks, n=1)
                hint = (
                    f"Did you mean `{near[0]}`?"
                    if near
                    else f"Use one of: {', '.join(sorted(blocks))}."
                )
                message = f"the extended blueprint has no block `{clip(node.name)}`"
                yield Finding("overlay-block", message, self._at(name, node.lineno), hint=hint)
            elif isinstance(node, nodes.Output) and _prints(node):
                message = "a blueprint that extends another must not have text outside of blocks"
                hint = "Move it into a block."
                yield Finding("overlay-block", message, self._at(name, node.lineno), hint=hint)

    def _blocks(self, name: str, seen: set[str]) -> set[str]:
        source = self._overlay.sources.get(name) or self._own.get(name.removeprefix(ORIGINAL))
        # A blueprint may extend itself by mistake; Jinja reports that when it renders.
        if source is None or name in seen:
            return set()
        tree = self._environment.parse(source)
        blocks = {block.name for block in tree.find_all(nodes.Block)}
        for parent in tree.find_all(nodes.Extends):
            if isinstance(parent.template, nodes.Const):
                blocks |= self._blocks(str(parent.template.value), seen | {name})
        return blocks

    def _report(self, name: str, error: Exception) -> None:
        self._broken.add(name)
        if isinstance(error, BlueprintError):
            id, message, hint = "overlay-python", error.finding.message, "Correct the blueprint."
        else:
            id, hint = next(
                ((id, hint) for id, kinds, hint in _KINDS if isinstance(error, kinds)),
                ("overlay-render", _BROKEN),
            )
            message = str(error) or type(error).__name__
            if not isinstance(error, TemplateError | UnsafeText | ValueError):
                message = f"{type(error).__name__}: {message}"
        place, line = self._origin(name, error)
        self.findings.append(Finding(id, _short(message), self._at(place, line), hint=hint))

    def _origin(self, name: str, error: Exception) -> tuple[str, int]:
        """Return the last blueprint and line of the overlay in the traceback of ``error``."""
        # Jinja rewrites tracebacks, so frames have the file names that the loader returned.
        files = {f"{self._overlay.where}/{path}": path for path in self._overlay.sources}
        filename = getattr(error, "filename", None)
        if isinstance(error, TemplateSyntaxError) and filename in files:
            return files[filename], error.lineno
        origin, trace = (name, 0), error.__traceback__
        while trace is not None:
            path = files.get(trace.tb_frame.f_code.co_filename)
            origin = (path, trace.tb_lineno) if path is not None else origin
            trace = trace.tb_next
        return origin

    def _at(self, path: str, line: int) -> Location:
        return Location(f"{self._overlay.where}/{path}", line, 1 if line else 0)


def _prints(node: nodes.Output) -> bool:
    return any(not isinstance(n, nodes.TemplateData) or n.data.strip() for n in node.nodes)


def _short(message: str) -> str:
    line = replace_unprintable(" ".join(message.split()), "\N{REPLACEMENT CHARACTER}")
    return line if len(line) <= 300 else line[:297] + "..."
