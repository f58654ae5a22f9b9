"""Edits that authors make to a generated repository, and changes to its description."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

_SPEC = """\
capsmith: 1
name: acme
{texts}
repository: https://github.com/acme/cluster-api-provider-acme
{contracts}
{more}
infrastructure:
  AcmeCluster:
    implements: InfraCluster
    spec:
      region: {{type: string, required: true, enum: [north, south]}}
  {machine}:
    implements: InfraMachine
    spec:
      size: string!
      {field}: string
"""
_TEXTS = ("", "description: Theirs", "title: Acme Metal\ndescription: Other")
_MORE = ("", "credentials: AcmeIdentity", "dependencies: [requests]\nlicence: MIT")


_CONTRACTS = (
    "contracts: [v1beta2]\nreleases: {v0.1: v1beta2}",
    "contracts: [v1beta1]\nreleases: {v0.1: v1beta1}",
    "contracts: [v1beta1, v1beta2]\nreleases: {v0.1: v1beta1, v0.2: v1beta2}\napiVersions:\n"
    "  - {name: v1alpha1, contract: v1beta1}\n"
    "  - {name: v1alpha2, contract: v1beta2, storage: true}",
    "contracts: [v1beta2]\nreleases: {v0.1: v1beta1, v0.2: v1beta2, v0.3: v1beta2}\napiVersions:\n"
    "  - {name: v1alpha1, contract: v1beta1, served: false}\n"
    "  - {name: v1alpha2, contract: v1beta2, storage: true}",
)


def description(number: int) -> str:
    """Return one of a few dozen valid provider.yaml texts."""
    texts, number = _TEXTS[number % 3], number // 3
    more, number = _MORE[number % 3], number // 3
    machine = ("AcmeMachine", "AcmeServer")[number % 2]
    field = ("image", "rack")[number // 2 % 2]
    contracts = _CONTRACTS[number // 4 % 4]
    return _SPEC.format(texts=texts, more=more, machine=machine, field=field, contracts=contracts)


DESCRIPTIONS = 144


@dataclass(frozen=True)
class Edit:
    """An edit of a file of the owner ``owner``, or of another file of the author."""

    owner: str
    which: int
    change: Callable[[bytes], bytes | None]

    def apply(self, folder: Path, files: Sequence[str]) -> None:
        """Apply the edit to one of ``files``, if there is any."""
        if not files:
            return
        path = folder / files[self.which % len(files)]
        before = path.read_bytes() if path.is_file() else b""
        after = self.change(before)
        if after is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(after)


_TEXT = st.lists(
    st.sampled_from(
        [b"", b"mine", b'description = "Mine"', b"=======", b"\ttrue", b"\xe9", b"[x]"]
    ),
    max_size=3,
)


@st.composite
def _lines(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Replace, remove or add lines somewhere."""
    where, removed = draw(st.floats(0, 1)), draw(st.integers(0, 3))
    added = draw(_TEXT)

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        start = int(where * len(lines))
        lines[start : start + removed] = added
        return b"\n".join(lines)

    return change


@st.composite
def _hot_lines(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Replace or precede a line that follows from the description."""
    hot = draw(st.sampled_from([b"description", b"license", b'  "', b"]", b"name"]))
    added, instead = draw(_TEXT), draw(st.booleans())

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        places = (place for place, line in enumerate(lines) if line.startswith(hot))
        start = next(places, 0)
        lines[start : start + instead] = added
        return b"\n".join(lines)

    return change


_CHANGES = st.one_of(
    _lines(),
    _lines(),
    _lines(),
    st.just(lambda content: content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")),
    st.just(lambda content: content.removesuffix(b"\n")),
    st.just(lambda content: b"\xef\xbb\xbf" + content),
    st.just(lambda content: None),
    st.binary(max_size=20).map(lambda junk: lambda content: junk),
)


def _edits(owner: str) -> st.SearchStrategy[Edit]:
    return st.builds(Edit, st.just(owner), st.integers(0, 40), _CHANGES)


EDITS = st.lists(
    st.one_of(
        *[st.builds(Edit, st.just("project"), st.just(0), _hot_lines())] * 4,
        *[_edits("merged")] * 3,
        *[_edits("scaffold")] * 2,
        *[_edits("own")] * 2,
    ),
    max_size=5,
).map(tuple)
"""Edits of what authors may edit."""

TRESPASSES = st.one_of(st.just(()), st.just(()), st.just(()), st.tuples(_edits("generated")))
"""Now and then, an edit of what they should not."""

OWN = (
    "notes.txt",
    "src/cluster_api_provider_acme/helpers.py",
    "docs/mine/a.md",
    "config/mine.yaml",
)
