"""The drawing of docstrings that readers judge: public ones, the same for each seed."""

from __future__ import annotations

from tests.unit.docstrings import read_docstrings

_SOURCE = '''\
"""Of the module."""

LIMIT: int = 3
"""Of a constant."""
_HIDDEN = 4
"""Of a private constant."""


class Box:
    """Of a class."""

    size: int
    """Of an attribute.

    Second paragraph.
    """

    def fill(self, count: int = 1) -> bool:
        """Of a method."""
        local = count
        return bool(local)


class _Private:
    """Of a private class."""

    def method(self) -> None:
        """Of its method."""


async def send() -> None:
    """Of a function."""
'''


def test_public_docstrings_of_a_module() -> None:
    found = [(each.subject, each.text) for each in read_docstrings(_SOURCE, "box.py")]

    assert found == [
        ("module", "Of the module."),
        ("LIMIT: int = 3", "Of a constant."),
        ("class Box", "Of a class."),
        ("Box.size: int", "Of an attribute.\n\nSecond paragraph."),
        ("Box.fill(self, count: int=1) -> bool", "Of a method."),
        ("send() -> None", "Of a function."),
    ]


def test_a_docstring_is_printed_with_its_place() -> None:
    constant = sorted(read_docstrings(_SOURCE, "box.py"))[1]

    assert str(constant) == "box.py:4 LIMIT: int = 3\n    Of a constant."
