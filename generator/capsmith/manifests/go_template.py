"""Parse Go's text/template as core does for patches, and list the variables in a template.

Templates are not executed.  The lexer and the parser share a file, because only together do they
accept exactly what Go accepts; tests compare both with Go.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from capsmith.manifests.go_literals import NUMBER, is_representable, is_valid_text
from capsmith.yamldoc.quote import quote


class TemplateError(ValueError):
    """Raised if a template does not parse; ``position`` is the error's offset in its source."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class TokenKind(StrEnum):
    """Types of tokens in a Go template."""

    TEXT = "text"
    OPEN = "open"
    CLOSE = "close"
    SPACE = "space"
    ASSIGN = "assign"
    DECLARE = "declare"
    PIPE = "pipe"
    STRING = "string"
    CHARACTER = "character"
    NUMBER = "number"
    VARIABLE = "variable"
    FIELD = "field"
    DOT = "dot"
    WORD = "word"
    """An identifier or a keyword."""
    LEFT = "left"
    RIGHT = "right"
    OTHER = "other"
    END = "end"


class Token(NamedTuple):
    """A token, and its offset in the Go template."""

    kind: TokenKind
    text: str
    position: int


_SPACE = r"[ \t\r\n]"
# A dash is a trim marker only if a blank follows: `{{-3}}` prints a negative number.
_OPEN = re.compile(rf"\{{\{{(?:-(?={_SPACE}))?")
# A comment must follow the braces directly, and `}}` must follow it: `{{ /* x */ }}` does not
# parse.
_COMMENT = re.compile(rf"\{{\{{(?:-{_SPACE})?/\*")
_COMMENT_END = re.compile(rf"(?:{_SPACE}-)?\}}\}}")
_CLOSE = re.compile(rf"(?:{_SPACE}-)?\}}\}}")
# Characters that may follow a name, as in `atTerminator` in Go's lexer.
_TERMINATED = re.compile(rf"{_SPACE}|[.,|:()]|\}}\}}|$(?!\n)")
_NUMBER_START = re.compile(r"[+-]|\.?[0-9]")
_PATTERNS = (
    # The blank before `-}}` belongs to the trim marker, so a run of blanks ends before it.
    (TokenKind.SPACE, re.compile(rf"{_SPACE}+?(?={_SPACE}-\}}\}})|{_SPACE}+")),
    (TokenKind.ASSIGN, re.compile("=")),
    (TokenKind.DECLARE, re.compile(":=")),
    (TokenKind.PIPE, re.compile(r"\|")),
    (TokenKind.STRING, re.compile(r'"(?:\\[^\n]|[^"\\\n])*"|`[^`]*`')),
    (TokenKind.CHARACTER, re.compile(r"'(?:\\[^\n]|[^'\\\n])*'")),
    (TokenKind.VARIABLE, re.compile(r"\$\w*")),
    (TokenKind.FIELD, re.compile(r"\.\w+")),
    (TokenKind.DOT, re.compile(r"\.")),
    (TokenKind.WORD, re.compile(r"\w+")),
    (TokenKind.LEFT, re.compile(r"\(")),
    (TokenKind.RIGHT, re.compile(r"\)")),
    (TokenKind.OTHER, re.compile(r"[!-/;-@\[-`{-~]")),
)
_NAMES = frozenset({TokenKind.VARIABLE, TokenKind.FIELD, TokenKind.DOT, TokenKind.WORD})
_UNFINISHED = {'"': "a quoted string", "`": "a quoted string", "'": "a character", ":": "`:=`"}


def read_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a template, ending with a token of kind END.

    Raises TemplateError for an invalid token.
    """
    position = 0
    while position < len(text):
        start = text.find("{{", position)
        if start != position:
            stop = len(text) if start < 0 else start
            yield Token(TokenKind.TEXT, text[position:stop], position)
            position = stop
        elif comment := _COMMENT.match(text, position):
            position = _after_comment(text, comment.end())
        else:
            opening = _OPEN.match(text, position)
            assert opening is not None
            yield Token(TokenKind.OPEN, opening[0], position)
            position = yield from _action(text, opening.end())
    yield Token(TokenKind.END, "", len(text))


def _after_comment(text: str, position: int) -> int:
    end = text.find("*/", position)
    if end < 0:
        raise TemplateError("a comment is not closed", position)
    closing = _COMMENT_END.match(text, end + 2)
    if closing is None:
        raise TemplateError("a comment ends before `}}`", end)
    return closing.end()


def _action(text: str, position: int) -> Generator[Token, None, int]:
    """Yield the tokens through the closing braces, and return the offset after them."""
    depth = 0
    while True:
        # First, because otherwise `}}` would be read as two tokens, and its dash as a number.
        closing = _CLOSE.match(text, position)
        if closing is not None:
            if depth:
                raise TemplateError("`)` is missing before `}}`", position)
            yield Token(TokenKind.CLOSE, closing[0], position)
            return closing.end()
        if position == len(text):
            raise TemplateError("`}}` is missing", position)
        token = _token(text, position)
        # Go's lexer counts parentheses too, and reports its errors before those of the grammar.
        depth += {TokenKind.LEFT: 1, TokenKind.RIGHT: -1}.get(token.kind, 0)
        if depth < 0:
            raise TemplateError("`)` has no `(`", position)
        yield token
        position += len(token.text)


def _token(text: str, position: int) -> Token:
    # Before the other patterns, because `.5` is a number and `.x` a field.
    if _NUMBER_START.match(text, position):
        found = NUMBER.match(text, position)
        # Go continues over letters and signs, and only then decides that 1x or 1+2 is not a number.
        if found is None or re.match(r"[\w+-]", text[found.end() : found.end() + 1]):
            raise TemplateError("a number is malformed", position)
        return Token(TokenKind.NUMBER, found[0], position)
    for kind, pattern in _PATTERNS:
        found = pattern.match(text, position)
        if found is None:
            continue
        if kind in _NAMES and not _TERMINATED.match(text, found.end()):
            character = text[found.end()]
            raise TemplateError(f"{quote(character)} cannot follow {quote(found[0])}", found.end())
        return Token(kind, found[0], position)
    character = text[position]
    if character in _UNFINISHED:
        raise TemplateError(f"{_UNFINISHED[character]} is not closed", position)
    raise TemplateError(f"{quote(character)} is not allowed in a template", position)


# The functions that core provides to templates of patches: text/template's own, and sprig's
# hermetic functions, whose results do not change.
_OF_GO = """
    and call eq ge gt html index js le len lt ne not or print printf println slice urlquery
"""
_OF_SPRIG = """
    abbrev abbrevboth add add1 add1f addf adler32sum ago all any append atoi b32dec b32enc b64dec
    b64enc base bcrypt biggest buildCustomCert camelcase cat ceil chunk clean coalesce compact
    concat contains decryptAES deepCopy deepEqual default derivePassword dict dig dir div divf
    duration durationRound empty encryptAES ext fail first float64 floor fromJson genCA genCAWithKey
    genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey get
    has hasKey hasPrefix hasSuffix hello htpasswd indent initial initials int int64 isAbs join
    kebabcase keys kindIs kindOf last list lower max maxf merge mergeOverwrite min minf mod mul mulf
    mustAppend mustChunk mustCompact mustDateModify mustDeepCopy mustFirst mustFromJson mustHas
    mustInitial mustLast mustMerge mustMergeOverwrite mustPrepend mustPush mustRegexFind
    mustRegexFindAll mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit
    mustRest mustReverse mustSlice mustToDate mustToJson mustToPrettyJson mustToRawJson mustUniq
    mustWithout must_date_modify nindent nospace omit osBase osClean osDir osExt osIsAbs pick pluck
    plural prepend push quote randInt regexFind regexFindAll regexMatch regexQuoteMeta
    regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace rest reverse round semver
    semverCompare seq set sha1sum sha256sum sha512sum shuffle slice snakecase sortAlpha split
    splitList splitn squote sub subf substr swapcase ternary title toDate toDecimal toJson
    toPrettyJson toRawJson toString toStrings trim trimAll trimPrefix trimSuffix trimall trunc tuple
    typeIs typeIsLike typeOf uniq unixEpoch unset until untilStep untitle upper urlJoin urlParse
    values without wrap wrapWith
"""
FUNCTIONS = frozenset((_OF_GO + _OF_SPRIG).split())


@dataclass
class Cursor:
    """A position in a list of tokens that ends with a token of kind END."""

    tokens: list[Token]
    at: int = 0

    @property
    def peek(self) -> Token:
        """Return the next token without advancing. At the end, this is the END token."""
        return self.tokens[self.at]

    def next(self) -> Token:
        """Return the next token and advance past it."""
        token = self.tokens[self.at]
        self.at += 1
        return token

    def peek_solid(self) -> Token:
        """Skip spaces, and return the next token without advancing past it."""
        while self.peek.kind is TokenKind.SPACE:
            self.at += 1
        return self.peek

    def next_solid(self) -> Token:
        """Skip spaces, return the next token, and advance past it."""
        self.peek_solid()
        return self.next()

    def expect(self, kind: TokenKind, where: str) -> Token:
        """Skip spaces, return the next token, and advance past it.

        Raises TemplateError if the token is of another kind. The error message ends with ``where``.
        """
        token = self.next_solid()
        if token.kind is not kind:
            raise self.unexpected(token, where)
        return token

    def word_after_open(self) -> str:
        """Return the word after the opening braces, or an empty string if another token follows.

        The next token must be the opening braces. The cursor does not move.
        """
        # Without a slice, which would copy the rest of the template for each of its actions.
        following = (self.tokens[at] for at in range(self.at + 1, len(self.tokens)))
        token = next(token for token in following if token.kind is not TokenKind.SPACE)
        return token.text if token.kind is TokenKind.WORD else ""

    def unexpected(self, token: Token, where: str) -> TemplateError:
        """Create the error for a misplaced token. Its message ends with ``where``."""
        found = "the end" if token.kind is TokenKind.END else quote(token.text)
        return TemplateError(f"{found} is unexpected {where}", token.position)


_MAX_DEPTH = 100
"""Maximum nesting of actions and parentheses; patches of ClusterClasses do not need as many."""
_VALUES = frozenset({"nil", "true", "false"})
_KEYWORDS = _VALUES | {
    *("block", "break", "continue", "define", "else", "end", "if", "range", "template", "with")
}
_LITERALS = frozenset({TokenKind.STRING, TokenKind.CHARACTER, TokenKind.NUMBER})


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template that core's webhook would accept."""

    variables: frozenset[str]
    """Names of the top-level variables that the template is known to read, such as ``builtin``."""


def parse_template(text: str) -> Template:
    """Return the parsed template with the variables that it reads.

    Raises TemplateError if core's webhook would reject it.
    """
    parser = _Parser(list(read_tokens(text)))
    parser.template()
    return Template(frozenset(parser.variables))


@dataclass
class _Parser(Cursor):
    variables: set[str] = field(default_factory=set)
    depth: int = 0
    scope: list[str] = field(default_factory=lambda: ["$"])
    ranges: int = 0
    defined: set[str] = field(default_factory=set)
    """Names of the nested templates that are not empty."""
    at_root: bool = True
    """Whether ``.`` currently refers to all variables."""
    root_known: bool = True
    """Whether ``$`` refers to all variables; a defined template may be called with other data."""

    def template(self) -> None:
        while self.peek.kind is not TokenKind.END:
            if self.peek.kind is TokenKind.OPEN and self.word_after_open() == "define":
                self.next()
                self.next_solid()
                self._definition()
            elif end := self._item():
                raise self.unexpected(end, "here")

    def _item(self) -> Token | None:
        """Parse a text or an action; return the token if it is an ``end`` or ``else`` instead."""
        token = self.next_solid()
        if token.kind is TokenKind.TEXT:
            return None
        if token.kind is not TokenKind.OPEN:
            raise self.unexpected(token, "here")
        return self._action()

    def _items(self) -> Token:
        """Parse items up to an ``end`` or ``else``, and return that token."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise TemplateError("it is nested too deeply", self.peek.position)
        while self.peek_solid().kind is not TokenKind.END:
            if end := self._item():
                self.depth -= 1
                return end
        raise TemplateError("`{{ end }}` is missing", self.peek.position)

    def _action(self) -> Token | None:
        token = self.peek_solid()
        keyword = token.text if token.kind is TokenKind.WORD else ""
        match keyword:
            case "if" | "range" | "with":
                self.next()
                self._control(keyword)
            case "end":
                self.next()
                self.expect(TokenKind.CLOSE, "after `end`")
                return token
            case "else":
                self.next()
                if self.peek_solid().text not in {"if", "with"}:
                    self.expect(TokenKind.CLOSE, "after `else`")
                return token
            case "break" | "continue":
                self.next()
                self.expect(TokenKind.CLOSE, f"after `{keyword}`")
                if not self.ranges:
                    raise TemplateError(f"{quote(keyword)} is outside of `range`", token.position)
            case "template" | "block":
                self.next()
                self._named(keyword)
            case _:
                self._pipeline(TokenKind.CLOSE, "in an action")
        return None

    def _control(self, keyword: str) -> None:
        scope, at_root = len(self.scope), self.at_root
        self._pipeline(TokenKind.CLOSE, f"in `{keyword}`", keyword)
        self.ranges += keyword == "range"
        # `range` and `with` set the dot to another value, and `if` does not.  Their `else` branches
        # use the previous dot, so it is restored before they are parsed.
        self.at_root = at_root and keyword == "if"
        end = self._items()
        self.ranges -= keyword == "range"
        self.at_root = at_root
        if end.text == "else":
            following = self.peek_solid()
            # `else if` continues an `if`, and `else with` a `with`; Go refuses to mix them.
            if following.kind is TokenKind.WORD and following.text == keyword in {"if", "with"}:
                self.next()
                self._nested(keyword)
            elif (end := self._items()).text != "end":
                raise self.unexpected(end, "where `end` is missing")
        # A variable lives until the `end` of the control structure in which it is declared.
        del self.scope[scope:]

    def _nested(self, keyword: str) -> None:
        """Parse the ``if`` of ``else if``, which shares the ``end`` of the outer ``if``."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise TemplateError("it is nested too deeply", self.peek.position)
        self._control(keyword)
        self.depth -= 1

    def _definition(self) -> None:
        name = self.expect(TokenKind.STRING, "in `define`")
        self._unquoted(name)
        self.expect(TokenKind.CLOSE, "in `define`")
        self._body("in `define`", name)

    def _named(self, keyword: str) -> None:
        name = self.expect(TokenKind.STRING, f"in `{keyword}`")
        self._unquoted(name)
        if keyword == "template" and self.peek_solid().kind is TokenKind.CLOSE:
            self.next()
            return
        self._pipeline(TokenKind.CLOSE, f"in `{keyword}`")
        if keyword == "block":
            self._body("in `block`", name)

    def _body(self, where: str, name: Token) -> None:
        """Parse the body of a nested template definition, which cannot see the outer variables."""
        kept = self.scope, self.ranges, self.at_root, self.root_known
        self.scope, self.ranges, self.at_root, self.root_known = ["$"], 0, False, False
        start = self.at
        end = self._items()
        if end.text != "end":
            raise self.unexpected(end, where)
        self.scope, self.ranges, self.at_root, self.root_known = kept
        self._define(name, self.tokens[start : self.at])

    def _define(self, name: Token, body: list[Token]) -> None:
        """Raise TemplateError if a template that is not empty is defined again."""
        has_text = any(each.kind is TokenKind.TEXT and each.text.strip() for each in body)
        # The last action is the `end` of the template.
        if not has_text and sum(each.kind is TokenKind.OPEN for each in body) < 2:
            return
        if name.text[1:-1] in self.defined:
            raise TemplateError(f"{name.text} is defined twice", name.position)
        self.defined.add(name.text[1:-1])

    def _pipeline(self, end: TokenKind, where: str, context: str = "") -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise TemplateError("it is nested too deeply", self.peek.position)
        self._declarations(context)
        commands = 0
        while (token := self.peek_solid()).kind is not end:
            if not self._is_term(token):
                raise self.unexpected(token, where)
            self._command(commands)
            commands += 1
        if not commands:
            raise TemplateError(f"a value is missing {where}", token.position)
        self.next()
        self.depth -= 1

    def _declarations(self, context: str) -> None:
        first = self.peek_solid()
        if first.kind is not TokenKind.VARIABLE:
            return
        start = self.at
        self.next()
        token = self.peek_solid()
        # Go's parser adds the variable for `=` as well; whether it exists is only checked on
        # execution.
        if token.kind in {TokenKind.ASSIGN, TokenKind.DECLARE}:
            self.next()
            self.scope.append(first.text)
        elif token.kind is TokenKind.OTHER and token.text == ",":
            if context != "range":
                raise self.unexpected(token, "after a variable")
            self.next()
            self.scope.append(first.text)
            self._second_declaration()
        else:
            self.at = start

    def _second_declaration(self) -> None:
        token = self.peek_solid()
        # Go reports the missing value of `range $i,` here, not a missing variable.
        if token.kind in {TokenKind.CLOSE, TokenKind.RIGHT}:
            return
        if token.kind is not TokenKind.VARIABLE:
            raise self.unexpected(token, "where `range` declares variables")
        start = self.at
        self.next()
        following = self.peek_solid()
        if following.kind in {TokenKind.ASSIGN, TokenKind.DECLARE}:
            self.next()
            self.scope.append(token.text)
        elif following.kind is TokenKind.OTHER and following.text == ",":
            raise self.unexpected(following, "where `range` declares variables")
        else:
            self.at = start

    def _command(self, number: int) -> None:
        """Parse the operands of a command; ``number`` is the command's index in the pipeline."""
        first = self.peek_solid()
        operands = 0
        while True:
            self.peek_solid()
            operands += self._operand()
            token = self.next()
            if token.kind is TokenKind.SPACE:
                continue
            if token.kind in {TokenKind.CLOSE, TokenKind.RIGHT}:
                self.at -= 1
            elif token.kind is not TokenKind.PIPE:
                raise self.unexpected(token, "after a value")
            break
        # Only functions and methods can receive the value of the previous command: `x | "text"` is
        # an error.
        if number and self._is_literal(first):
            raise TemplateError(f"{quote(first.text)} cannot be called", first.position)
        if not operands:
            raise self.unexpected(token, "where a value is missing")

    def _is_literal(self, token: Token) -> bool:
        return token.kind in {*_LITERALS, TokenKind.DOT} or token.text in _VALUES

    def _is_term(self, token: Token) -> bool:
        if token.kind is TokenKind.WORD:
            return token.text not in _KEYWORDS or token.text in _VALUES
        return token.kind in {
            *_LITERALS,
            TokenKind.DOT,
            TokenKind.FIELD,
            TokenKind.VARIABLE,
            TokenKind.LEFT,
        }

    def _operand(self) -> bool:
        """Parse a term and the fields after it; return whether there is a term."""
        token = self.peek_solid()
        if not self._is_term(token):
            return False
        self.next()
        self._term(token)
        following = self.peek
        if following.kind is TokenKind.FIELD:
            if self._is_literal(token):
                raise self.unexpected(following, f"after {quote(token.text)}")
            # `$` remains the root in every `range` and `with`, whatever the dot is.
            if token.text == "$" and self.root_known:
                self.variables.add(following.text[1:])
            while self.peek.kind is TokenKind.FIELD:
                self.next()
        return True

    def _term(self, token: Token) -> None:
        match token.kind:
            case TokenKind.WORD if token.text not in FUNCTIONS | _KEYWORDS:
                raise TemplateError(f"unknown function {quote(token.text)}", token.position)
            case TokenKind.VARIABLE if token.text not in self.scope:
                raise TemplateError(f"{quote(token.text)} is not declared", token.position)
            case TokenKind.FIELD if self.at_root:
                self.variables.add(token.text[1:])
            case TokenKind.STRING | TokenKind.CHARACTER:
                self._unquoted(token)
            case TokenKind.NUMBER if not is_representable(token.text):
                raise TemplateError("a number is too large", token.position)
            case TokenKind.LEFT:
                self._pipeline(TokenKind.RIGHT, "in parentheses")

    def _unquoted(self, token: Token) -> None:
        """Raise TemplateError for an escape sequence that Go does not know."""
        if not is_valid_text(token.text):
            raise TemplateError(f"{quote(token.text)} is malformed", token.position)
