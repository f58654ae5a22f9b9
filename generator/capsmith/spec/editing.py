"""Values of a YAML text replaced, so that all around them stays byte for byte.

Lists and mappings are changed in place, entry by entry: comments, order, quotes and line ends
stay, comments inside of what is removed too.  What comes out is read again: unless it means just
what was asked for, nothing is changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capsmith.findings import Finding
from capsmith.spec.document import Document, parse_document
from capsmith.spec.layout import Node, layout
from capsmith.spec.splice import Splices, Unsafe, words

Values = Mapping[str, Any]
"""Top-level keys and what they shall be: texts, lists of texts and mappings, mappings."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The new text, or the finding that says why there is none."""

    text: str
    finding: Finding | None = None


def edited(text: str, document: Document, values: Values, after: str) -> Edited:
    """``text``, which reads as ``document``, with ``values`` under top-level keys.

    What is not there yet follows the key ``after``.  Id: ``spec-not-editable``, at the value that
    cannot be changed without disturbing what it stands in.
    """
    changed = {key: value for key, value in values.items() if document.data.get(key) != value}
    key = next(iter(changed), after)
    try:
        splices = Splices(text)
        root = layout(text)
        for key, value in changed.items():
            entry = root.get(key)
            if entry is not None:
                _change(splices, entry[1], document.data[key], value)
            else:
                splices.add_entry(root, key, value, root.get(after))
        result = splices.done()
    except Unsafe:
        return Edited(text, _not_editable(document, changed, key))
    again, _ = parse_document(result, document.file)
    meant = {**document.data, **changed}
    if again is None or not _same(again.data, meant):
        return Edited(text, _not_editable(document, changed, next(iter(changed))))
    return Edited(result)


def _change(splices: Splices, node: Node, old: Any, new: Any) -> None:
    """Make ``node``, which reads as ``old``, read as ``new``.  Raises Unsafe."""
    if old == new:
        return
    if isinstance(old, list) and isinstance(new, list) and node.children:
        _change_list(splices, node, old, new)
    elif isinstance(old, dict) and isinstance(new, dict) and node.children:
        _change_mapping(splices, node, old, new)
    elif isinstance(old, str) and isinstance(new, dict) and node.is_word:
        others = {key: value for key, value in new.items() if value != old}
        splices.wrap(node, others, next(key for key in new if key not in others))
    elif not isinstance(new, list | dict) and node.is_word:
        splices.replace(node, new)
    else:
        raise Unsafe


def _change_list(splices: Splices, node: Node, old: Sequence[Any], new: Sequence[Any]) -> None:
    there, wanted = [_name(each) for each in old], [_name(each) for each in new]
    gone = [index for index, name in enumerate(there) if name not in wanted]
    come = [each for each in new if _name(each) not in there]
    for index, name in enumerate(there):
        if name in wanted:
            _change(splices, node.children[index], old[index], new[wanted.index(name)])
    for index, each in zip(list(gone), list(come), strict=False):
        if isinstance(old[index], str) and isinstance(each, str):
            _change(splices, node.children[index], old[index], each)
            gone.remove(index)
            come.remove(each)
    splices.remove_items(node, gone)
    splices.add_items(node, come)


def _name(item: Any) -> Any:
    return item.get("name") if isinstance(item, dict) else item


def _change_mapping(
    splices: Splices, node: Node, old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    if old.keys() - new.keys():
        raise Unsafe
    for key, value in node.entries:
        _change(splices, value, old[key.value], new[key.value])
    entries = {key: value for key, value in new.items() if key not in old}
    splices.add_entries(node, entries, in_front=next(iter(new)) in entries)


def _same(one: Any, other: Any) -> bool:
    """Whether two documents are equal, and True is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _not_editable(document: Document, values: Values, key: str) -> Finding:
    wanted = ", ".join(f"`{key}: {words(value)}`" for key, value in values.items())
    return Finding(
        "spec-not-editable",
        "this cannot be changed without disturbing what stands around it",
        document.value((key,)),
        hint=f"write it yourself, then run capsmith update: {wanted}",
    )
