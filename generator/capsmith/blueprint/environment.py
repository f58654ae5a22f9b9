"""The Jinja environment, in which undefined names and unsafe text are errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from jinja2 import BytecodeCache, Environment, FunctionLoader, StrictUndefined, Undefined, nodes
from jinja2.bccache import Bucket
from jinja2.compiler import CodeGenerator, Frame

from capsmith.blueprint.filters import FILTERS
from capsmith.blueprint.provider_filters import PROVIDER_FILTERS
from capsmith.safetext import SafeText


# Jinja's code generator with the rules of this project.
class LiteralsAreSafe(CodeGenerator):
    """Treat string constants of a blueprint as safe: they are the blueprint's own text.

    Refuses the statements whose output would be printed unchecked: Jinja joins what is inside of
    `filter` and `call` blocks to a plain ``str``, and prints that.
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
        # Folding anything else would lose the mark of its safety.
        raise nodes.Impossible

    def visit_FilterBlock(self, node: nodes.FilterBlock, frame: Frame) -> None:
        self.fail("the `filter` statement is not supported: print with a filter", node.lineno)

    def visit_CallBlock(self, node: nodes.CallBlock, frame: Frame) -> None:
        self.fail(
            "the `call` statement is not supported: call the macro in an expression", node.lineno
        )


class Cache(Protocol):
    """Keeps slow results; losing them costs only time."""

    def get(self, key: str) -> bytes | None:
        """Return the value stored under ``key``."""

    def put(self, key: str, value: bytes) -> None:
        """Store ``value`` if possible."""


class UnsafeText(Exception):
    """A blueprint printed text that no literal filter had made safe."""


def refuse_unsafe(value: Any) -> Any:
    """Return safe text and numbers unchanged; raise UnsafeText for everything else.

    It is the environment's ``finalize``: Jinja calls it with each value that an expression prints.
    """
    # Checked by type and not by escaping: a plain str may come from provider.yaml, and only its
    # blueprint knows whether YAML, Python or Markdown has to be escaped.
    if isinstance(value, SafeText) or type(value) in (int, float):
        return value
    if isinstance(value, Undefined):
        str(value)  # Printing it raises an error that names the undefined variable.
    raise UnsafeText(f"{value!r} ({type(value).__name__}) is printed without a literal filter")


_ALL_FILTERS: Mapping[str, Callable[..., Any]] = {**FILTERS, **PROVIDER_FILTERS}
_PASSED = "jinja_pass_arg"
"""What Jinja's ``pass_context`` sets on a function."""


class _KeptBytecode(BytecodeCache):
    def __init__(self, cache: Cache, key: str) -> None:
        self._cache = cache
        # Compiled code passes the context to those filters that take it, so it depends on which do.
        contextual = [name for name, each in _ALL_FILTERS.items() if hasattr(each, _PASSED)]
        self._key = "-".join((key, *sorted(contextual)))

    def load_bytecode(self, bucket: Bucket) -> None:
        kept = self._cache.get(f"bytecode-{self._key}-{bucket.key}")
        if kept is not None:
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._cache.put(f"bytecode-{self._key}-{bucket.key}", bucket.bytecode_to_string())


RULES: Mapping[str, Any] = {
    "undefined": StrictUndefined,
    "finalize": refuse_unsafe,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
    "autoescape": False,
    "auto_reload": False,
}
"""Options of Jinja for capsmith's blueprints and those of overlays."""


class BlueprintEnvironment(Environment):
    """Jinja with the rules of this project."""

    code_generator_class = LiteralsAreSafe
    safe_literal: Callable[[str], SafeText] = SafeText


def make_environment(sources: Mapping[str, str], cache: Cache | None, key: str) -> Environment:
    """Return an environment that loads blueprints from ``sources``, texts by path.

    ``cache`` keeps compiled blueprints under ``key``, which must change with everything that the
    compiler depends on: capsmith's version.  Jinja adds the text of the blueprint itself.
    """
    environment = BlueprintEnvironment(
        loader=FunctionLoader(lambda name: sources.get(name)),
        bytecode_cache=_KeptBytecode(cache, key) if cache is not None else None,
        **RULES,
    )
    environment.filters.update(_ALL_FILTERS)
    return environment
