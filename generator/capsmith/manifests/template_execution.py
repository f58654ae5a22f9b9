"""Execute Go templates on texts and mappings, as core does to generate names.

Keys that are missing are errors, as with Go's option ``missingkey=error``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from capsmith.manifests.go_template import TokenKind
from capsmith.manifests.template_functions import (
    MISSING,
    ExecutionError,
    call_function,
    format_value,
    is_true,
    list_counts,
)
from capsmith.manifests.template_tree import (
    Branch,
    Node,
    Operand,
    Pipeline,
    UnsupportedError,
    read_tree,
)

_CONSTANTS = {"true": True, "false": False}
_NIL = "nil"
_DIGITS = 18


def execute_template(text: str, data: Mapping[str, Any]) -> str:
    """Return what a template renders; the template parses, and calls functions of Go only.

    Raises ExecutionError if Go cannot execute it, and UnsupportedError if it uses what is not known
    here.
    """
    executor = _Executor(data, [("$", data)])
    return executor.render(read_tree(text), data)


def _is_function(operand: Operand) -> bool:
    is_word = operand.kind is TokenKind.WORD
    return is_word and operand.text not in _CONSTANTS and operand.text != _NIL


@dataclass
class _Executor:
    data: Mapping[str, Any]
    variables: list[tuple[str, Any]] = field(default_factory=list)

    def render(self, nodes: Sequence[Node], dot: Any) -> str:
        return "".join(self._render(node, dot) for node in nodes)

    def _render(self, node: Node, dot: Any) -> str:
        if isinstance(node, str):
            return node
        if isinstance(node, Pipeline):
            value = self._evaluate(node, dot)
            return "" if node.variable else format_value(value, "<no value>")
        return self._branch(node, dot)

    def _branch(self, branch: Branch, dot: Any) -> str:
        kept = len(self.variables)
        value = self._evaluate(branch.pipeline, dot)
        if is_true(value):
            rendered = self.render(branch.body, value if branch.keyword == "with" else dot)
        else:
            rendered = self.render(branch.otherwise, dot)
        del self.variables[kept:]
        return rendered

    def _evaluate(self, pipeline: Pipeline, dot: Any) -> Any:
        value: Any = MISSING
        for operands in pipeline.commands:
            value = self._command(operands, dot, value)
        if pipeline.is_new:
            self.variables.append((pipeline.variable, value))
        elif pipeline.variable:
            self._assign(pipeline.variable, value)
        return value

    def _assign(self, name: str, value: Any) -> None:
        for number in range(len(self.variables) - 1, -1, -1):
            if self.variables[number][0] == name:
                self.variables[number] = (name, value)
                return
        raise ExecutionError(f"assigns {name}, which is not declared")

    def _read_variable(self, name: str) -> Any:
        for known, value in reversed(self.variables):
            if known == name:
                return value
        # A declaration may read its own variable: that parses.
        raise ExecutionError(f"reads {name}, which is not declared")

    def _command(self, operands: Sequence[Operand], dot: Any, final: Any) -> Any:
        first, rest = operands[0], operands[1:]
        if _is_function(first):
            return self._call(first.text, rest, dot, final)
        has_arguments = bool(rest) or final is not MISSING
        if has_arguments:
            raise ExecutionError(f"gives arguments to {first.text}, which is not a function")
        if first.text == _NIL and first.kind is TokenKind.WORD:
            raise ExecutionError("has nil where a value is needed")
        return self._operand(first, dot)

    def _call(self, name: str, operands: Sequence[Operand], dot: Any, final: Any) -> Any:
        count = len(operands) + (final is not MISSING)
        lowest, highest = list_counts(name)
        if count < lowest or (highest is not None and count > highest):
            raise ExecutionError(f"calls {name} with {count} arguments")
        values: list[Any] = []
        for operand in operands:
            values.append(self._operand(operand, dot))
            # These two evaluate no argument after the one that decides.
            if name in {"and", "or"} and is_true(values[-1]) == (name == "or"):
                return values[-1]
        if final is not MISSING:
            values.append(final)
        return values[-1] if name in {"and", "or"} else call_function(name, values)

    def _operand(self, operand: Operand, dot: Any) -> Any:
        """Return the value of an operand with its fields."""
        if _is_function(operand):
            value = self._call(operand.text, (), dot, MISSING)
        elif operand.pipeline is not None:
            value = self._evaluate(operand.pipeline, dot)
        elif operand.kind is TokenKind.VARIABLE:
            value = self._read_variable(operand.text)
        elif operand.kind in {TokenKind.DOT, TokenKind.FIELD}:
            value = dot
        else:
            value = _read_literal(operand)
        for name in operand.fields:
            value = _read_field(value, name, operand)
        return value


def _read_field(value: Any, name: str, operand: Operand) -> Any:
    if not _is_mapping(value) or name not in value:
        start = (operand.text,) if operand.kind is TokenKind.VARIABLE else ()
        path = ".".join((*start, *operand.fields))
        raise ExecutionError(f"reads {path}, which names do not have")
    return value[name]


def _is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _read_literal(operand: Operand) -> Any:
    text = operand.text
    if operand.kind is TokenKind.WORD and text in _CONSTANTS:
        return _CONSTANTS[text]
    if operand.kind is TokenKind.STRING and (text[0] == "`" or "\\" not in text):
        return text[1:-1]
    if operand.kind is TokenKind.NUMBER and text.lstrip("+-").isdigit():
        digits = text.lstrip("+-")
        # Others are octal, or may be too large for Go.
        if digits == "0" or (digits[0] != "0" and len(digits) <= _DIGITS):
            return int(text)
    raise UnsupportedError(text)
