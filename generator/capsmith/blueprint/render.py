"""Render planned files into a file tree. Undefined names and unsafe strings are errors.

Writes nothing to disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from types import CodeType
from typing import Any, Protocol

from jinja2 import (
    BytecodeCache,
    Environment,
    FunctionLoader,
    StrictUndefined,
    TemplateError,
    Undefined,
    nodes,
)
from jinja2.bccache import Bucket
from jinja2.compiler import CodeGenerator, Frame

from capsmith.blueprint.filters import FILTERS
from capsmith.blueprint.plan import PlannedFile
from capsmith.blueprint.provider_filters import PROVIDER_FILTERS
from capsmith.errors import BlueprintError
from capsmith.progress import track
from capsmith.safetext import SafeText
from capsmith.tree import FileTree, GeneratedFile


# Jinja's code generator with this project's rules.
class LiteralsAreSafe(CodeGenerator):
    """Compiler that treats a blueprint's string constants, which its author wrote, as safe.

    Rejects `filter` and `call` blocks, because Jinja joins their content into a plain ``str`` and
    prints that without a check.
    """

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:
        if isinstance(node.value, str):
            self.write(f"environment.safe_literal({node.value!r})")
        else:
            super().visit_Const(node, frame)

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if isinstance(node, nodes.Const) and isinstance(node.value, str):
            return node.value
        if isinstance(node, nodes.TemplateData):
            return super()._output_child_to_const(node, frame, finalize)
        # Folding anything else would lose the information that it is safe.
        raise nodes.Impossible

    def visit_FilterBlock(self, node: nodes.FilterBlock, frame: Frame) -> None:
        self.fail("the `filter` statement is not supported: print with a filter", node.lineno)

    def visit_CallBlock(self, node: nodes.CallBlock, frame: Frame) -> None:
        self.fail(
            "the `call` statement is not supported: call the macro in an expression", node.lineno
        )


class Cache(Protocol):
    """Stores the results of slow operations. Entries may disappear at any time."""

    def get(self, key: str) -> bytes | None:
        """Return the value stored under ``key``, or None if there is none."""

    def put(self, key: str, value: bytes) -> None:
        """Store ``value`` under ``key``; do nothing if it cannot be stored."""


class UnsafeText(Exception):
    """Raised if a blueprint prints a string that has not passed through a literal filter."""


def refuse_unsafe(value: Any) -> Any:
    """Return safe text and numbers unchanged; raise UnsafeText for any other value.

    This is the environment's ``finalize`` function, which Jinja calls for each value that an
    expression prints.
    """
    # Safety is checked by type instead of escaping everything: a plain str may come from
    # provider.yaml, and only the blueprint that prints it knows whether to escape it for YAML,
    # Python or Markdown.
    if isinstance(value, SafeText) or type(value) in (int, float):
        return value
    if isinstance(value, Undefined):
        str(value)  # Printing it raises an error that names the undefined variable.
    raise UnsafeText(f"{value!r} ({type(value).__name__}) is printed without a literal filter")


_ALL_FILTERS: Mapping[str, Callable[..., Any]] = {**FILTERS, **PROVIDER_FILTERS}
_PASSED = "jinja_pass_arg"
"""Name of the attribute that Jinja's ``pass_context`` sets on a function."""


_CODES: dict[tuple[str, str, str], CodeType] = {}
"""Compiled blueprints of this process, which may render several providers.

The keys are those of the cache, of the blueprint, and of its source.
"""


class _KeptBytecode(BytecodeCache):
    def __init__(self, cache: Cache, key: str) -> None:
        self._cache = cache
        # Compiled code passes the context to the filters that accept it, so it depends on the
        # filters.
        contextual = [name for name, each in _ALL_FILTERS.items() if hasattr(each, _PASSED)]
        self._key = "-".join((key, *sorted(contextual)))

    def load_bytecode(self, bucket: Bucket) -> None:
        code = _CODES.get((self._key, bucket.key, bucket.checksum))
        if code is not None:
            bucket.code = code
            return
        kept = self._cache.get(f"bytecode-{self._key}-{bucket.key}")
        if kept is not None:
            bucket.bytecode_from_string(kept)
            self._keep(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._cache.put(f"bytecode-{self._key}-{bucket.key}", bucket.bytecode_to_string())
        self._keep(bucket)

    def _keep(self, bucket: Bucket) -> None:
        if bucket.code is not None:  # else the source has changed
            _CODES[self._key, bucket.key, bucket.checksum] = bucket.code


RULES: Mapping[str, Any] = {
    "undefined": StrictUndefined,
    "finalize": refuse_unsafe,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
    # HTML escaping would be wrong for YAML, Python and Markdown: literal filters escape instead.
    "autoescape": False,
    # Sources are strings in memory, which never change during a run.
    "auto_reload": False,
}
"""Jinja options shared by capsmith's blueprints and overlays."""


class BlueprintEnvironment(Environment):
    """The Jinja environment for capsmith's own blueprints; undefined names are errors."""

    code_generator_class = LiteralsAreSafe
    safe_literal: Callable[[str], SafeText] = SafeText


def make_environment(sources: Mapping[str, str], cache: Cache | None, key: str) -> Environment:
    """Return an environment that loads blueprints from ``sources``, keyed by path.

    ``cache`` stores compiled blueprints under ``key``, which must change with capsmith's version.
    Jinja adds the blueprint's source to the key.
    """
    environment = BlueprintEnvironment(
        loader=FunctionLoader(lambda name: sources.get(name)),
        bytecode_cache=_KeptBytecode(cache, key) if cache is not None else None,
        **RULES,
    )
    environment.filters.update(_ALL_FILTERS)
    return environment


LINE_LENGTH = 100
"""Maximum line length, in capsmith and in generated repositories."""


class Formatter:
    """Formats Python source with black, and caches the results.

    Black takes most of a first run's time.
    """

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self._style = _describe_style() if cache is not None else ""

    def format(self, text: str, blueprint: str) -> str:
        """Format the Python source ``text`` with black.

        Raises BlueprintError, which names ``blueprint``, if ``text`` is not valid Python.
        """
        if self._cache is None:
            return self._black(text, blueprint)
        key = f"{self._style}-{hashlib.sha256(text.encode()).hexdigest()}"
        kept = self._cache.get(key)
        if kept is not None:
            return kept.decode()
        formatted = self._black(text, blueprint)
        self._cache.put(key, formatted.encode())
        return formatted

    def _black(self, text: str, blueprint: str) -> str:
        # Imported when first needed: a run whose files are all cached does not need it.
        import black
        from black.mode import TargetVersion
        from black.parsing import InvalidInput

        mode = black.Mode(line_length=LINE_LENGTH, target_versions={TargetVersion.PY311})
        try:
            return black.format_str(text, mode=mode)
        except (InvalidInput, ValueError) as error:
            raise BlueprintError(
                "blueprint-python",
                f"the rendered text is not valid Python: {error}",
                file=blueprint,
                hint="Correct the blueprint.",
            ) from error


@cache
def _describe_style() -> str:
    # Determining black's version takes two milliseconds, and a process may render several times.
    return f"black-{version('black')}-{LINE_LENGTH}"


_FOLDER = "project/"


def render(
    files: Sequence[PlannedFile], sources: Mapping[str, str], cache: Cache | None, key: str
) -> FileTree:
    """Render all planned files, and format the Python files.

    ``sources`` holds the blueprints by path under ``blueprints/``.  ``cache`` and ``key`` are
    passed to :func:`make_environment`.  Raises BlueprintError if a blueprint is missing or broken,
    prints unsafe text, or produces invalid Python.
    """
    environment = make_environment(sources, cache, key)
    formatter = Formatter(cache)
    return FileTree.of(
        [_render(file, environment, sources, formatter) for file in track("rendering file", files)]
    )


def _render(
    file: PlannedFile, environment: Environment, sources: Mapping[str, str], formatter: Formatter
) -> GeneratedFile:
    name = _FOLDER + file.entry.source
    if name not in sources:
        raise BlueprintError(
            "blueprint-missing",
            "the manifest lists this blueprint, but it does not exist",
            file=f"blueprints/{name}",
            hint="Add the blueprint or remove its row from blueprints/manifest.yaml.",
        )
    source = sources[name]
    if is_static(source):
        text = source
    else:
        text = _rendered(file, name, environment)
        if file.path.endswith(".py"):
            text = formatter.format(text, f"blueprints/{name}")
    return GeneratedFile(file.path, text, file.entry.owner, file.entry.executable)


def is_static(source: str) -> bool:
    """Return whether a blueprint has no Jinja tags. Its output does not need to be formatted."""
    return not any(mark in source for mark in ("{{", "{%", "{#"))


def _rendered(file: PlannedFile, name: str, environment: Environment) -> str:
    try:
        text = environment.get_template(name).render(file.context)
    except (TemplateError, UnsafeText, TypeError, AttributeError, KeyError, ValueError) as error:
        raise BlueprintError(
            "blueprint-render",
            f"{type(error).__name__}: {error}",
            file=f"blueprints/{name}",
            line=_line(error, name),
            hint="Correct the blueprint; text of the user must pass a literal filter.",
        ) from error
    return tidy(text)


def tidy(text: str) -> str:
    """Return ``text`` with one final newline, or an empty string if it is blank."""
    return text.rstrip("\n") + "\n" if text.strip() else ""


def _line(error: Exception, name: str) -> int:
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    # Jinja rewrites tracebacks so that they name blueprints, but an error in a macro passes through
    # several of them: the innermost line of this blueprint is the one to show.
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith((name, "<template>")):
            line = trace.tb_lineno
        trace = trace.tb_next
    return int(line or 0)
