"""Render a report as Markdown for a GitHub job summary or comment. Pure: data in, text out.

Nothing from a manifest becomes markup, HTML, a mention or a link.  Anything that is not plain prose
is put into a code span or a fence that is longer than any run of backticks inside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from capsmith.printable import make_printable
from capsmith.report_pages.model import (
    Entry,
    Excerpt,
    MatrixRow,
    ReportPage,
    make_folder_matrix,
    make_matrix,
)
from capsmith.shorten import shorten, shorten_line

MAX_CHARACTERS = 65_000
"""Maximum length of a report. GitHub accepts comments of 65,536 characters and summaries of 1
MiB."""
_RESERVED = 500
"""Number of characters reserved for the note about findings that are left out."""
_MAX_FOLDERS = 20
"""Maximum number of releases in the table of releases and rules."""
_MAX_PART = 8_000
"""Maximum length of a table or list in the head, in characters."""
_MAX_CELL = 60
"""Maximum length of a name in a table, in characters."""
_MAX_LIVES, _MAX_MOMENTS, _MAX_LOG_LINES = 5, 12, 20
"""Maximum numbers of objects, of changes of each object and of lines of each log in a finding."""
_PROSE = re.compile(r"[A-Za-z0-9 ,;.'()/%+=?-]*(: [A-Za-z0-9 ,;.'()/%+=?-]+)*:?")
_AUTOLINKED = re.compile(r"\b(www\.|GH-[0-9]|[0-9a-f]{7,40}\b)", re.IGNORECASE)
_LINK = re.compile(r"https://[A-Za-z0-9./_~%#?=&+:-]+")


def render(page: ReportPage) -> str:
    """Return the report as Markdown without a final newline, short enough for a GitHub comment.

    If some findings do not fit, the last line states how many are left out, and the list of passed
    checks is left out, too.
    """
    head = "\n".join(_head(page))
    blocks, size = [head], len(head)
    entries = list(_findings(page))
    shown = 0
    for text in entries:
        if size + len(text) > MAX_CHARACTERS - _RESERVED:
            break
        blocks.append(text)
        size += len(text) + 1
        shown += 1
    if shown < len(entries):
        left = len(entries) - shown
        blocks.append(
            f"**{left} of {len(entries)} findings are left out, because GitHub limits the size;"
            " `--format html` has them all.**"
        )
    elif page.held:
        tail = "\n".join(_held(page))
        if size + len(tail) <= MAX_CHARACTERS - _RESERVED:
            blocks.append(tail)
    return "\n".join(blocks).rstrip("\n")


def escape(text: str) -> str:
    """Return ``text`` on one line, as plain prose or, if it could be markup, as a code span."""
    line = shorten(make_printable(text)).strip()
    if _PROSE.fullmatch(line) and not _AUTOLINKED.search(line):
        return line
    return format_code(line)


def format_code(text: str) -> str:
    """Return ``text`` on one line as a code span, shortened if it is too long; empty if it is
    blank."""
    line = shorten(make_printable(text))
    fence = "`" * (_longest_run(line) + 1)
    blank = " " if line.startswith(("`", " ")) or line.endswith(("`", " ")) else ""
    return f"{fence}{blank}{line}{blank}{fence}" if line.strip() else ""


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _head(page: ReportPage) -> Iterator[str]:
    yield f"# {escape(page.title)}"
    yield ""
    yield f"**{escape(page.verdict)}**"
    yield ""
    yield from _limit(
        [f"- {escape(each.name)}: {escape(each.value)}" for each in page.facts], "facts"
    )
    if page.command:
        yield f"- Repeat with: {format_code(page.command)}"
    yield from _limit([f"- {escape(note)}" for note in page.notes[:50]], "notes")
    yield ""
    yield from _folder_matrix(page)
    if page.releases:
        yield from _table(page.releases, make_matrix(page))


def _folder_matrix(page: ReportPage) -> Iterator[str]:
    """Yield the matrix of releases and rules, with the verdict on each release above it."""
    shown = page.folders[:_MAX_FOLDERS]
    if not shown:
        return
    yield from _limit([f"- {escape(folder)}: {escape(text)}" for folder, text in shown], "releases")
    if len(shown) < len(page.folders):
        left = len(page.folders) - len(shown)
        yield f"- {left} of {len(page.folders)} releases are left out of this list and the table."
    yield ""
    # The end of a path says more than its beginning.
    labels = [folder if len(folder) < _MAX_CELL else f"...{folder[-50:]}" for folder, _ in shown]
    yield from _table(labels, make_folder_matrix(page))


def _table(columns: Sequence[str], rows: Sequence[MatrixRow]) -> Iterator[str]:
    if not rows:
        return
    yield f"| Rule | {' | '.join(map(_cell, columns))} |"
    yield f"|---|{'---|' * len(columns)}"
    lines = []
    for row in rows[:100]:
        counts = (str(len(numbers) or "") for numbers in row.cells[: len(columns)])
        lines.append(f"| {_cell(row.id)} | {' | '.join(counts)} |")
    yield from _limit(lines, "rules")
    yield ""


def _limit(lines: Sequence[str], what: str) -> Iterator[str]:
    """Yield the first lines of a part, up to its maximum length, and how many are left out.

    ``what`` names the lines.
    """
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > _MAX_PART:
            left = len(lines) - number
            # A blank line ends a table.
            yield from ("", f"{left} of {len(lines)} {what} are left out.")
            return
        yield line


def _cell(text: str) -> str:
    """Return ``text`` for a table, where a bar would begin the next cell even in a code span."""
    return escape(shorten(text.replace("|", "\N{BROKEN BAR}"), _MAX_CELL))


def _findings(page: ReportPage) -> Iterator[str]:
    """Yield the text of each finding, including any headings that precede it."""
    for section in page.sections:
        heading = f"## {escape(section.title)} ({len(section.entries)})\n\n"
        for group in section.groups:
            if group.consequence:
                heading += f"### {escape(group.consequence)}\n\n"
            for entry in group.entries:
                yield heading + "\n".join(_entry(entry))
                heading = ""


def _entry(entry: Entry) -> Iterator[str]:
    yield f"- **{escape(entry.id)}**: {escape(entry.message)}"
    if entry.location.file:
        yield f"  - Where: {format_code(str(entry.location))} {format_code(entry.path)}".rstrip()
    for name, value in (
        ("Release", entry.folder),
        ("Object", entry.subject),
        ("Rule", entry.rule),
        ("When", entry.when),
        ("Releases of core", ", ".join(entry.releases)),
        ("To mend it", entry.hint),
    ):
        if value:
            yield f"  - {name}: {escape(value)}"
    if _LINK.fullmatch(entry.link):
        yield f"  - [Source](<{entry.link}>)"
    elif entry.link:
        yield f"  - Source: {format_code(entry.link)}"
    yield ""
    if entry.excerpt is not None:
        yield from _excerpt(entry.excerpt)
        yield ""
    if entry.details:
        yield from _block(entry.details)
        yield ""
    yield from _lives(entry)
    for log in entry.logs:
        yield f"  - Log of {escape(log.name)}, its last lines:"
        yield ""
        yield from (f"  {line}".rstrip() for line in _block(log.lines[-_MAX_LOG_LINES:]))
        yield ""


def _lives(entry: Entry) -> Iterator[str]:
    """Yield the last changes of each object of a check."""
    for life in entry.lives[:_MAX_LIVES]:
        yield f"  - {escape(life.subject)}:"
        for moment in life.moments[-_MAX_MOMENTS:]:
            writer = f" by {escape(moment.writer)}" if moment.writer else ""
            what = escape(shorten_line(moment.what))
            yield f"    - {moment.seconds:.2f} s: {what}{writer}"
    if len(entry.lives) > _MAX_LIVES:
        yield f"  - {len(entry.lives) - _MAX_LIVES} more objects: see the HTML report."
    if entry.lives:
        yield ""


def _excerpt(excerpt: Excerpt) -> Iterator[str]:
    marks = {excerpt.marked: ">"}
    yield from _block(
        f"{marks.get(number, ' ')}{number:>6}  {shorten_line(make_printable(line))}"
        for number, line in enumerate(excerpt.lines, excerpt.first)
    )


def _block(texts: Iterable[str]) -> Iterator[str]:
    """Yield lines as they are, in a list item."""
    lines = [shorten(make_printable(text)).rstrip() for text in texts]
    fence = "`" * max(_longest_run("\n".join(lines)) + 1, 3)
    yield from (f"  {line}".rstrip() for line in (f"{fence}text", *lines, fence))


def _held(page: ReportPage) -> Iterator[str]:
    yield f"## {escape(page.held_title)} ({len(page.held)})"
    yield ""
    for fact in page.held:
        yield f"- **{escape(fact.name)}**: {escape(fact.value)}"
