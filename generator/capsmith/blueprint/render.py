"""Render the planned files into a file tree.  Nothing is written here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from jinja2 import Environment, TemplateError

from capsmith.blueprint.environment import Cache, UnsafeText, make_environment
from capsmith.blueprint.plan import PlannedFile
from capsmith.errors import BlueprintError
from capsmith.tree import FileTree, GeneratedFile

LINE_LENGTH = 100
"""Columns, here and in the generated repository."""


class Formatter:
    """Formats Python with black; what was formatted before comes from the cache.

    Black takes most of the time of a first run.
    """

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self._style = f"black-{version('black')}-{LINE_LENGTH}" if cache is not None else ""

    def format(self, text: str, blueprint: str) -> str:
        """Return ``text`` as black formats it.

        Raises BlueprintError, which names ``blueprint``, when ``text`` is not valid Python.
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


_FOLDER = "project/"


def render(
    files: Sequence[PlannedFile], sources: Mapping[str, str], cache: Cache | None, key: str
) -> FileTree:
    """Render and format every planned file.

    ``sources`` holds the blueprints by path below ``blueprints/``.  Raises BlueprintError when a
    blueprint is missing, broken, prints unsafe text, or gives Python that does not parse.
    """
    environment = make_environment(sources, cache, key)
    formatter = Formatter(cache)
    return FileTree.of([_render(file, environment, sources, formatter) for file in files])


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
    """Return whether a blueprint is plain text.  Static Python blueprints are kept formatted."""
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
    """Return ``text`` with one final newline; empty for blanks only."""
    return text.rstrip("\n") + "\n" if text.strip() else ""


def _line(error: Exception, name: str) -> int:
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith((name, "<template>")):
            line = trace.tb_lineno
        trace = trace.tb_next
    return int(line or 0)
