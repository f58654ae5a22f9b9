"""Find and replace ``${VARIABLES}`` as clusterctl does, which uses drone/envsubst.

Accepts exactly what clusterctl accepts, including its peculiarities: ``${A:+b}`` and ``${A:?b}``
are defaults, and ``${A-b}`` is an error.  Variables without a value stay as ``${NAME}``, so that
the output shows what a user must set.  Pure, and independent of YAML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

MAX_DEPTH = 50
"""Maximum nesting depth of substitutions. No template reaches it; clusterctl has no limit."""

# Early releases of clusterctl took blanks around the name, so it still rewrites them.
_LEGACY = re.compile(r"\$\{(?:\s+[\w$]+\s*|[\w$]+\s+)\}", re.ASCII)
_BLANK = re.compile(r"\s+", re.ASCII)
_NAME = re.compile(r"\w+")
_CASE = re.compile(r"[,^]{1,2}")
_TRIM = re.compile(r"##?|%%?")
_REPLACE = re.compile(r"/[/#%]?")
_DEFAULT = re.compile(r":[=?+-]|=")
_ESCAPED = {"$$": "$", "\\/": "/", "\\\\": "\\"}


class Substitution(NamedTuple):
    """A substitution such as ``${NAME:=default}`` that clusterctl accepts."""

    name: str
    operator: str
    """Operator such as ``:=``; empty for the plain value, and ``#`` alone for its length."""
    arguments: tuple[str | Substitution, ...]
    start: int
    end: int
    """Offset just after the closing brace."""

    @property
    def is_default(self) -> bool:
        """Return whether the arguments are the default for an empty value."""
        return _DEFAULT.fullmatch(self.operator) is not None

    @property
    def is_required(self) -> bool:
        """Return whether clusterctl requires a value if this is the first occurrence."""
        return not self.arguments

    @property
    def has_default(self) -> bool:
        """Return whether there is a nonempty default."""
        return self.is_default and bool(self.arguments)

    @property
    def inner(self) -> Iterator[Substitution]:
        """Yield all substitutions inside the arguments, outer ones before inner ones."""
        for argument in self.arguments:
            if isinstance(argument, Substitution):
                yield argument
                yield from argument.inner


class RefusedForm(NamedTuple):
    """An invalid substitution, which makes clusterctl reject the whole file."""

    start: int
    end: int


Piece: TypeAlias = str | Substitution | RefusedForm
_Function: TypeAlias = tuple[str, tuple[str | Substitution, ...], int]
"""An operator, its arguments, and the offset after them."""


class _BadSubstitution(Exception):
    """Raised for a string that is not a valid substitution."""


def remove_blanks(text: str) -> str:
    """Return ``text`` with ``${ NAME }`` replaced by ``${NAME}``, which means the same."""
    return _LEGACY.sub(lambda found: _BLANK.sub("", found.group()), text)


def parse_pieces(text: str) -> Iterator[Piece]:
    """Yield the literal strings and substitutions in ``text`` in order; ``$$`` becomes ``$``."""
    position = 0
    # Scanned by hand: substitutions nest, and a regular expression would not find the matching
    # brace.
    while (dollar := text.find("$", position)) >= 0:
        yield text[position:dollar]
        if text.startswith("${", dollar):
            piece = _read(text, dollar)
            yield piece
            position = piece.end
        else:
            yield "$"
            position = dollar + (2 if text.startswith("$$", dollar) else 1)
    yield text[position:]


def _read(text: str, start: int) -> Substitution | RefusedForm:
    try:
        return _substitution(text, start, 1)
    except _BadSubstitution:
        return RefusedForm(start, _end_of_refused(text, start))


def _end_of_refused(text: str, start: int) -> int:
    """Return the offset after the matching brace, or the end of the line if there is none."""
    depth, position = 0, start
    while position < len(text) and text[position] != "\n":
        if text.startswith("${", position):
            depth += 1
        elif text[position] == "}":
            depth -= 1
        position += 1
        if depth == 0 and text[position - 1] == "}":
            break
    return position


def _substitution(text: str, start: int, depth: int) -> Substitution:
    """Parse the substitution whose ``${`` is at offset ``start``."""
    if depth > MAX_DEPTH:
        raise _BadSubstitution
    position = start + 2
    if text.startswith("#", position):
        name, end = _take(_NAME, text, position + 1)
        return Substitution(name, "#", (), start, _closed(text, end))
    name, position = _take(_NAME, text, position)
    operator, arguments, position = _function(text, position, depth)
    return Substitution(name, operator, arguments, start, _closed(text, position))


def _function(text: str, position: int, depth: int) -> _Function:
    """Parse the operator and arguments between the name and the closing brace."""
    match text[position : position + 1]:
        case "," | "^":
            # Nothing may follow: a pattern, as in bash's `${A,,x}`, is an error.
            operator, position = _take(_CASE, text, position)
            return operator, (), position
        case "#" | "%":
            operator, position = _take(_TRIM, text, position)
            argument, position = _argument(text, position, "}", depth)
            return operator, (argument,), position
        case "/":
            return _replacement(text, position, depth)
        case ":" | "=" if _DEFAULT.match(text, position):
            return _default(text, position, depth)
        case ":":
            return _substring(text, position, depth)
    return "", (), position


def _default(text: str, position: int, depth: int) -> _Function:
    operator, position = _take(_DEFAULT, text, position)
    arguments: list[str | Substitution] = []
    # A default may have several parts, each of which is an argument: `${A:=x-${B}-y}`.
    while not text.startswith("}", position):
        argument, position = _argument(text, position, "}", depth)
        arguments.append(argument)
    return operator, tuple(arguments), position


def _substring(text: str, position: int, depth: int) -> _Function:
    # The Go code reads a character, and steps back one byte to read it again.
    if not text[position + 1 : position + 2].isascii():  # envsubst steps back by bytes
        raise _BadSubstitution
    first, position = _argument(text, position + 1, ":}", depth)
    if not text.startswith(":", position):
        return ":", (first,), position
    # Like envsubst, skip further colons: ${A:1::2} is ${A:1:2}.
    while text.startswith(":", position):
        position += 1
    second, position = _argument(text, position, "}", depth)
    return ":", (first, second), position


def _replacement(text: str, position: int, depth: int) -> _Function:
    operator, position = _take(_REPLACE, text, position)
    pattern, position = _argument(text, position, "/", depth, escapes=True)
    if not text.startswith("/", position):
        raise _BadSubstitution
    while text.startswith("/", position):
        position += 1
    if text.startswith("}", position):
        return operator, (pattern,), position
    replacement, position = _argument(text, position, "}", depth, escapes=True)
    return operator, (pattern, replacement), position


def _argument(
    text: str, position: int, stop: str, depth: int, *, escapes: bool = False
) -> tuple[str | Substitution, int]:
    """Parse one substitution, or text up to a substitution or a character in ``stop``."""
    if text.startswith("${", position):
        inner = _substitution(text, position, depth + 1)
        return inner, inner.end
    result: list[str] = []
    while position < len(text) and not text.startswith("${", position):
        pair = text[position : position + 2]
        if escapes and pair in _ESCAPED:
            result.append(_ESCAPED[pair])
            position += 2
        elif text[position] in stop:
            break
        else:
            result.append(text[position])
            position += 1
    # Only a default and a replacement may be empty.
    if not result:
        raise _BadSubstitution
    return "".join(result), position


def _take(form: re.Pattern[str], text: str, position: int) -> tuple[str, int]:
    found = form.match(text, position)
    if found is None:
        raise _BadSubstitution
    return found.group(), found.end()


def _closed(text: str, position: int) -> int:
    if not text.startswith("}", position):
        raise _BadSubstitution
    return position + 1


_Expansion = Callable[..., str]


def expand(substitution: Substitution, values: Mapping[str, str]) -> str:
    """Return the string that replaces a substitution.

    ``values`` holds the values of variables by name.  Raises ValueError for a substring with a
    negative length, at which clusterctl panics.
    """
    arguments = [
        argument if isinstance(argument, str) else expand(argument, values)
        for argument in substitution.arguments
    ]
    value = values.get(substitution.name, "")
    if substitution.is_default:
        return value or "".join(arguments) or _placeholder(substitution)
    if substitution.name not in values:
        return _placeholder(substitution)
    function = _FUNCTIONS.get(substitution.operator)
    if substitution.operator == "#" and not arguments:
        # In bytes, like Go's len.
        return str(len(value.encode()))
    return function(value, *arguments) if function else value


def _placeholder(substitution: Substitution) -> str:
    return f"${{{substitution.name}}}"


def _cut(value: str, position: str, length: str | None = None) -> str:
    start, count = _integer(position), _integer(length)
    if start is None or (length is not None and count is None):
        return value
    # As in bash, a negative position counts from the end.
    start = max(len(value) + start, 0) if start < 0 else start
    if count is None or start + count >= len(value):
        return value[start:]
    if count < 0:
        raise ValueError(f"a substring of length {count}")
    return value[start : start + count]


def _integer(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[+-]?[0-9]{1,9}", text) else None


def _trim(value: str, pattern: str, *, longest: bool) -> str:
    """Return ``value`` without a prefix that matches ``pattern``.

    The prefix is the longest match if ``longest``, otherwise the shortest.
    """
    form = _glob(pattern)
    if form is None:
        return value
    # The pattern is tried on each prefix, because it is anchored at both ends like path.Match of
    # Go.
    lengths = range(len(value), 0, -1) if longest else range(1, len(value) + 1)
    found = next((length for length in lengths if form.fullmatch(value, 0, length)), 0)
    return value[found:]


def _trim_end(value: str, pattern: str, *, longest: bool) -> str:
    # envsubst reverses both too, so a class such as [a-c] in a suffix never matches.
    return _trim(value[::-1], pattern[::-1], longest=longest)[::-1]


def _glob(pattern: str) -> re.Pattern[str] | None:
    """Convert a shell pattern to a regular expression; return None if it is malformed."""
    result, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        found = _CLASS.match(pattern, position)
        if character == "[":
            if found is None:
                return None
            negated = "^" if found["negated"] else ""
            result += f"[{negated}{_escaped_class(found['members'])}]"
            position = found.end()
            continue
        if character == "\\":
            position += 1
            if position == len(pattern):
                return None
            result += re.escape(pattern[position])
        else:
            result += {"*": ".*", "?": "."}.get(character, re.escape(character))
        position += 1
    try:
        return re.compile(result, re.DOTALL)
    except re.error:
        return None


_CLASS = re.compile(r"\[(?P<negated>\^?)(?P<members>(?:[^\]\\-]|-(?!\])|\\.)+)\]", re.DOTALL)


def _escaped_class(members: str) -> str:
    return re.sub(r"([\[&~|^])", r"\\\1", members)


def _replace_prefix(value: str, prefix: str, *replacement: str) -> str:
    if not replacement or not value.startswith(prefix):
        return value
    return replacement[0] + value[len(prefix) :]


def _replace_suffix(value: str, suffix: str, *replacement: str) -> str:
    if not replacement or not value.endswith(suffix):
        return value
    return value[: len(value) - len(suffix)] + replacement[0]


_FUNCTIONS: Mapping[str, _Expansion] = {
    ",": lambda value: value[:1].lower() + value[1:],
    ",,": str.lower,
    "^": lambda value: value[:1].upper() + value[1:],
    "^^": str.upper,
    "#": lambda value, pattern: _trim(value, pattern, longest=False),
    "##": lambda value, pattern: _trim(value, pattern, longest=True),
    "%": lambda value, pattern: _trim_end(value, pattern, longest=False),
    "%%": lambda value, pattern: _trim_end(value, pattern, longest=True),
    ":": _cut,
    "/": lambda value, old, new="": value.replace(old, new, 1),
    "//": lambda value, old, new="": value.replace(old, new),
    "/#": _replace_prefix,
    "/%": _replace_suffix,
}
"""Functions by operator; other operators leave the value unchanged."""


_NO_VALUES: Mapping[str, str] = MappingProxyType({})


class Trouble(StrEnum):
    """The reason why a variable probably does not work as the file's author expects."""

    SYNTAX = "syntax"
    """The substitution is invalid, so clusterctl rejects the whole file."""
    EMPTY = "empty"
    """The default is empty (``${A:=}``), so clusterctl still requires a value."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One occurrence of a variable, ``${…}``, in a release's file."""

    text: str
    name: str
    default: str | None
    """Default as written, including nested variables, or None if there is none."""
    line: int
    """Line number (1-based)."""
    commented: bool
    """Whether the variable is in a YAML comment. clusterctl replaces variables there, too."""
    trouble: Trouble | None = None
    is_required: bool = False
    """Whether clusterctl requires a value if this is the first occurrence in the file."""
    inner: tuple[str, ...] = ()
    """Names of nested variables that have no default here. clusterctl never requires a value for
    them."""


def scan(text: str) -> tuple[Variable, ...]:
    """Return the occurrences of variables in ``text``, in order.

    Nested variables are not returned separately, but listed in :attr:`Variable.inner`.
    """
    # Most files of a source tree have no variables, and this test is cheaper than scanning.
    if "${" not in text:
        return ()
    text = remove_blanks(text)
    result: list[Variable] = []
    line, counted = 1, 0
    comments = CommentFinder(text)
    for piece in parse_pieces(text):
        if not isinstance(piece, str):
            # Counted from the last variable on, so that long files are read only once.
            line += text.count("\n", counted, piece.start)
            counted = piece.start
            result.append(_variable(text, piece, line, comments.is_commented(piece.start)))
    return tuple(result)


def find_required(variables: Iterable[Variable]) -> frozenset[str]:
    """Return the names of required variables: those whose first occurrence has no default."""
    first: dict[str, bool] = {}
    for variable in variables:
        if variable.trouble is not Trouble.SYNTAX:
            # clusterctl only considers the first occurrence, whatever the later ones are.
            first.setdefault(variable.name, variable.is_required)
    return frozenset(name for name, is_required in first.items() if is_required)


def substitute(text: str, values: Mapping[str, str] = _NO_VALUES) -> str:
    """Replace the variables in ``text`` with their values or defaults, as clusterctl does.

    Variables that have neither, and substitutions that clusterctl rejects, stay unchanged.
    """
    if "$" not in text:
        return text
    text = remove_blanks(text)
    return "".join(_replaced(text, piece, values) for piece in parse_pieces(text))


def _replaced(text: str, piece: str | Substitution | RefusedForm, values: Mapping[str, str]) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, RefusedForm):
        return text[piece.start : piece.end]
    try:
        return expand(piece, values)
    except ValueError:
        return text[piece.start : piece.end]


def _variable(text: str, piece: Substitution | RefusedForm, line: int, commented: bool) -> Variable:
    own = text[piece.start : piece.end]
    if isinstance(piece, RefusedForm):
        return Variable(own, "", None, line, commented, Trouble.SYNTAX)
    default = None
    if piece.has_default:
        default = own[len("${") + len(piece.name) + len(piece.operator) : -1]
    return Variable(
        text=own,
        name=piece.name,
        default=default,
        line=line,
        commented=commented,
        trouble=Trouble.EMPTY if piece.is_default and not piece.arguments else None,
        is_required=piece.is_required,
        inner=tuple(each.name for each in piece.inner if not each.has_default),
    )


class CommentFinder:
    """Finds YAML comments, reading each character of a string only once.

    Positions must be passed in ascending order.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._start = 0
        self._quote = ""
        self._is_commented = False

    def is_commented(self, position: int) -> bool:
        """Return whether ``position`` is in a comment. A ``#`` in quotes does not start one."""
        start = self._text.rfind("\n", self._position, position) + 1
        if start:
            self._position = self._start = start
            self._quote, self._is_commented = "", False
        for index in range(self._position, position):
            self._read(index)
        self._position = position
        return self._is_commented

    def _read(self, index: int) -> None:
        character = self._text[index]
        before = self._text[index - 1] if index > self._start else ""
        if self._quote:
            self._quote = "" if character == self._quote else self._quote
        elif character in "'\"" and (not before or before in " \t[{,:="):
            self._quote = character
        elif character == "#" and (not before or before in " \t"):
            self._is_commented = True
