"""The keywords of structural schemas, with the effect of changes (``schemas/releases``)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources.abc import Traversable

from capsmith.contract.model import Keyword
from capsmith.contract.reading import load, validate


def load_keywords(reader: Traversable) -> Mapping[str, Keyword]:
    """Load the keywords by name, in the order of the file, from the schemas folder ``reader``.

    Raises UnreadableInput for invalid data.
    """
    from capsmith.contract.files import KeywordsFile  # builds pydantic models

    file = reader / "releases" / "keywords.yaml"
    return {
        entry.keyword: Keyword(
            entry.keyword, entry.compare, entry.narrowed, entry.widened, entry.limit, entry.reason
        )
        for entry in validate(KeywordsFile, load(file), str(file)).keywords
    }
