"""Texts of XML whose values are escaped."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring


def element(tag: str, *children: Element, text: str | None = None, **attributes: str) -> Element:
    """Return an element; an attribute may end with an underscore where Python needs one."""
    made = Element(tag, {key.rstrip("_"): value for key, value in attributes.items()})
    made.text = text
    made.extend(children)
    return made


def text_of(root: Element) -> str:
    """Return the document."""
    return tostring(root, encoding="unicode")
