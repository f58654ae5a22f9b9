"""The settings of the admission webhooks of a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from capsmith.provider_yaml.kind_parts import WebhooksSpec

_TIMEOUT_SECONDS: Final = 10


class Webhooks(NamedTuple):
    """The admission webhooks of a kind."""

    validation: bool
    defaulting: bool
    deletion: bool
    """Whether deletions are validated too."""
    templates: bool
    """Whether templates are treated like objects."""
    timeout_seconds: int


def webhooks_of(written: WebhooksSpec | None, has_template: bool) -> Webhooks | None:
    """Return the settings with their defaults; None if the author wrote none."""
    if written is None:
        return None
    return Webhooks(
        validation=bool(written.validation),
        defaulting=bool(written.defaulting),
        deletion=bool(written.deletion),
        templates=has_template and written.templates is not False,
        timeout_seconds=written.timeout_seconds or _TIMEOUT_SECONDS,
    )
