"""The same description in many layouts: styles, quotes, comments, line ends, order of keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

Ex = TypeVar("Ex")
OTHERS = {
    "capsmith": "capsmith: 1",
    "name": "name: acme  # the name",
    "repository": "repository: 'https://github.com/acme/cluster-api-provider-acme'",
    "description": "description: |\n  contracts: [v1beta1]\n\n  # no comment\n\n",
    "infrastructure": (
        "infrastructure: &kinds\n"
        "  AcmeCluster:\n"
        "    implements: InfraCluster # and no more\n"
        "  AcmeMachine: {implements: InfraMachine, spec: {size: &size string!, image: *size}}\n"
    ).rstrip("\n"),
}
"""Keys that no upgrade touches."""


class Draw(Protocol):
    """Return an example of a strategy, as `draw` of Hypothesis's data does."""

    def __call__(self, strategy: st.SearchStrategy[Ex]) -> Ex: ...


@dataclass
class Pen:
    """Writes values as an author might."""

    draw: Draw
    comments: list[str] = field(default_factory=list)

    def text(self, values: dict[str, Any]) -> tuple[str, list[str]]:
        """Return the whole text with LF line endings, and the parts of it that must not change."""
        keys = self.draw(st.permutations([*OTHERS, *values]))
        parts, kept = [self.lines()], []
        for key in keys:
            if key in OTHERS:
                kept.append(f"{OTHERS[key]}\n")
                parts.append(kept[-1])
            else:
                parts.append(f"{key}:{self.value(values[key])}\n")
            parts.append(self.lines())
        return "".join(parts), kept

    def value(self, value: Any) -> str:
        style = self.draw(st.sampled_from(["flow", "flow", "lines", "block"]))
        indent = self.draw(
            st.sampled_from(["", "  ", "    "] if isinstance(value, list) else ["  "])
        )
        if style == "block":
            return self.trail() + "\n" + self.block(value, indent)
        return " " + self.flow(value, spread=style == "lines") + self.trail()

    def block(self, value: Any, indent: str) -> str:
        if isinstance(value, dict):
            entries = [f"{self.word(key)}: {self.word(each)}" for key, each in value.items()]
            lines = [f"{self.lines()}{indent}{each}{self.trail()}" for each in entries]
        else:
            lines = [f"{self.lines()}{indent}- {self.item(each, indent)}" for each in value]
        return "\n".join(lines)

    def item(self, item: Any, indent: str) -> str:
        if not isinstance(item, dict):
            return self.word(item) + self.trail()
        if self.draw(st.booleans()):
            return self.flow(item, spread=False) + self.trail()
        entries = [f"{key}: {self.word(each)}{self.trail()}" for key, each in item.items()]
        return f"\n{indent}  ".join(entries)

    def flow(self, value: Any, *, spread: bool) -> str:
        inside = self.gap(spread)
        if isinstance(value, dict):
            parts = [f"{self.word(key)}: {self.word(each)}" for key, each in value.items()]
            opening, closing = "{", "}"
        else:
            parts = [
                self.flow(e, spread=False) if isinstance(e, dict) else self.word(e) for e in value
            ]
            opening, closing = "[", "]"
        between = [self.comma(spread) for _ in parts[1:]]
        inner = parts[0] + "".join(
            comma + part for comma, part in zip(between, parts[1:], strict=True)
        )
        last = self.draw(st.sampled_from(["", ",", " ,"]))
        return opening + inside + inner + last + self.gap(spread) + closing

    def gap(self, spread: bool) -> str:
        if not spread:
            return self.draw(st.sampled_from(["", " "]))
        return f"{self.trail(always=True)}\n   "

    def comma(self, spread: bool) -> str:
        if not spread:
            return self.draw(st.sampled_from([",", ", ", " , "])) + " "
        way = self.draw(st.sampled_from(["after", "before"]))
        return f",{self.trail()}\n   " if way == "after" else f"{self.trail()}\n   , "

    def word(self, word: Any) -> str:
        if isinstance(word, bool):
            return "true" if word else "false"
        quote = self.draw(st.sampled_from(["", "", "'", '"']))
        return f"{quote}{word}{quote}"

    def lines(self) -> str:
        """Return lines of comments and empty lines."""
        kinds = self.draw(st.lists(st.sampled_from(["", "#", "    #"]), max_size=2))
        return "".join(f"{self.comment(kind)}\n" if kind else "\n" for kind in kinds)

    def trail(self, *, always: bool = False) -> str:
        if not always and not self.draw(st.sampled_from([False, False, True])):
            return self.draw(st.sampled_from(["", "", "  "]))
        return self.comment(" #")

    def comment(self, prefix: str) -> str:
        self.comments.append(f"c{len(self.comments)}-")
        return f"{prefix}{self.draw(st.sampled_from([' ', '']))}[{self.comments[-1]}: {{, '#"
