"""Walk through the tokens of a template."""

from __future__ import annotations

from dataclasses import dataclass

from capsmith.manifests.go_template.tokens import Kind, TemplateError, Token
from capsmith.yamldoc.quote import shown


@dataclass
class Cursor:
    """A position in a list of tokens, which ends with one of kind END."""

    tokens: list[Token]
    at: int = 0

    @property
    def peek(self) -> Token:
        """Return the next token, and stay before it."""
        return self.tokens[self.at]

    def next(self) -> Token:
        """Return the next token, and go behind it."""
        token = self.tokens[self.at]
        self.at += 1
        return token

    def peek_solid(self) -> Token:
        """Return the next token that is no space, and stay before it."""
        while self.peek.kind is Kind.SPACE:
            self.at += 1
        return self.peek

    def next_solid(self) -> Token:
        """Return the next token that is no space, and go behind it."""
        self.peek_solid()
        return self.next()

    def expect(self, kind: Kind, where: str) -> Token:
        """Return the next token that is no space; raises TemplateError if it is of another kind."""
        token = self.next_solid()
        if token.kind is not kind:
            raise self.unexpected(token, where)
        return token

    def word_after_open(self) -> str:
        """Return the word that follows the braces before which this is; empty if none does."""
        following = (token for token in self.tokens[self.at + 1 :] if token.kind is not Kind.SPACE)
        token = next(following)
        return token.text if token.kind is Kind.WORD else ""

    def unexpected(self, token: Token, where: str) -> TemplateError:
        """Return the error on a token that cannot be where it is."""
        found = "the end" if token.kind is Kind.END else shown(token.text)
        return TemplateError(f"{found} is unexpected {where}", token.position)
