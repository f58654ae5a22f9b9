"""Read a Go template as a tree of the actions that may be executed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from capsmith.manifests.go_template import Cursor, Token, TokenKind, read_tokens

_SPACE = " \t\r\n"
_TRIMMING_COMMENT = re.compile(r"\{\{-\s+/\*|\*/\s+-\}\}")
_ENDS = ("else", "end")
_BRANCHES = ("if", "with")
_UNSUPPORTED = ("block", "break", "continue", "define", "range", "template")


class UnsupportedError(Exception):
    """Raised for a template that is valid, but uses what this package does not execute."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A term with the names of the fields that are read from it."""

    kind: TokenKind
    text: str
    fields: tuple[str, ...] = ()
    pipeline: Pipeline | None = None
    """The pipeline in parentheses; None for other terms."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, each with its operands, and the variable that receives the value."""

    commands: tuple[tuple[Operand, ...], ...]
    variable: str = ""
    is_new: bool = False
    """Whether the variable is declared here, rather than assigned."""


@dataclass(frozen=True, slots=True)
class Branch:
    """An ``if`` or a ``with``."""

    keyword: str
    pipeline: Pipeline
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


Node = str | Pipeline | Branch


def read_tree(text: str) -> tuple[Node, ...]:
    """Return the nodes of a template that parses.

    Raises UnsupportedError for templates with loops or nested templates.
    """
    if _TRIMMING_COMMENT.search(text):
        raise UnsupportedError("a comment that trims text")
    reader = _Reader(_trim(list(read_tokens(text))))
    return reader.read_nodes()


def _trim(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with the spaces removed that trim markers remove."""
    trimmed: list[Token] = []
    for number, token in enumerate(tokens):
        text = token.text
        if token.kind is TokenKind.TEXT:
            if number and _is_trim(tokens[number - 1], TokenKind.CLOSE, token):
                text = text.lstrip(_SPACE)
            if _is_trim(tokens[number + 1], TokenKind.OPEN, token):
                text = text.rstrip(_SPACE)
        trimmed.append(token._replace(text=text))
    return trimmed


def _is_trim(token: Token, kind: TokenKind, text: Token) -> bool:
    """Return whether braces trim the text beside them."""
    first, second = sorted((token, text), key=lambda each: each.position)
    # Comments are no tokens, and nothing is trimmed beyond them.
    is_beside = first.position + len(first.text) == second.position
    return token.kind is kind and "-" in token.text and is_beside


@dataclass
class _Reader(Cursor):
    """Reads nodes; the template is known to parse."""

    def read_nodes(self) -> tuple[Node, ...]:
        """Return the nodes up to an ``end``, an ``else`` or the end of the template."""
        nodes: list[Node] = []
        while self.peek.kind is not TokenKind.END:
            if self.peek.kind is TokenKind.TEXT:
                nodes.append(self.next().text)
                continue
            keyword = self.word_after_open()
            if keyword in _ENDS:
                break
            if keyword in _UNSUPPORTED:
                raise UnsupportedError(keyword)
            self.next()
            if keyword in _BRANCHES:
                self.next_solid()
                nodes.append(self._read_branch(keyword))
            else:
                nodes.append(self._read_pipeline(TokenKind.CLOSE))
        return tuple(nodes)

    def _read_branch(self, keyword: str) -> Branch:
        pipeline = self._read_pipeline(TokenKind.CLOSE)
        body = self.read_nodes()
        self.next()
        otherwise: tuple[Node, ...] = ()
        if self.next_solid().text == "else":
            if self.peek_solid().kind is TokenKind.WORD:
                # `else if` shares the `end` of the outer `if`.
                otherwise = (self._read_branch(self.next().text),)
                return Branch(keyword, pipeline, body, otherwise)
            self.next()
            otherwise = self.read_nodes()
            self.next()
            self.next_solid()
        self.next_solid()
        return Branch(keyword, pipeline, body, otherwise)

    def _read_pipeline(self, end: TokenKind) -> Pipeline:
        """Return the pipeline up to a token of a kind, which is read as well."""
        variable, is_new = "", False
        start = self.at
        if self.peek_solid().kind is TokenKind.VARIABLE:
            name = self.next().text
            following = self.next_solid()
            if following.kind in {TokenKind.ASSIGN, TokenKind.DECLARE}:
                variable, is_new = name, following.kind is TokenKind.DECLARE
            else:
                self.at = start
        commands: list[tuple[Operand, ...]] = []
        operands: list[Operand] = []
        while (token := self.next_solid()).kind is not end:
            if token.kind is TokenKind.PIPE:
                commands.append(tuple(operands))
                operands = []
            else:
                operands.append(self._read_operand(token))
        return Pipeline((*commands, tuple(operands)), variable, is_new)

    def _read_operand(self, token: Token) -> Operand:
        pipeline = None
        if token.kind is TokenKind.LEFT:
            pipeline = self._read_pipeline(TokenKind.RIGHT)
        fields = [token.text[1:]] if token.kind is TokenKind.FIELD else []
        while self.peek.kind is TokenKind.FIELD:
            fields.append(self.next().text[1:])
        return Operand(token.kind, token.text, tuple(fields), pipeline)
