"""Find credentials of identities in what users can read: logs, statuses and events."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Final, Self

from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.log import TextFormatter
from capsmith_runtime.testing.manifests import Manifests

_SECRET_KEY: Final = re.compile(r"token|passw|passphrase|secret|credential|private|key$", re.I)
"""Names of keys whose values are secret; a user name or an address may be in messages."""
_PUBLIC_KEY: Final = re.compile(r"(id|name|public_?key)$", re.I)
_MIN_CHARACTERS: Final = 6
"""Minimum length of a value: shorter ones are in other texts by accident."""


def find_secret_values(manifests: Manifests) -> Mapping[str, str]:
    """Return the values of the sample Secrets that must stay secret, each with its description."""
    found: dict[str, str] = {}
    for secret in manifests.samples("Secret"):
        for key, value in (secret.get("stringData") or {}).items():
            is_secret = _SECRET_KEY.search(key) and not _PUBLIC_KEY.search(key)
            if is_secret and len(str(value)) >= _MIN_CHARACTERS:
                found[str(value)] = f"{key} of Secret {secret['metadata']['name']}"
    return found


def find_secret_line(text: str) -> str:
    """Return the line of a key that is in any text with the key, however its lines are quoted."""
    return max((line for line in text.splitlines() if "KEY" not in line), key=len, default=text)


class SecretValueDetector(logging.Handler):
    """Looks for secret values in all log records while it is used as a context manager."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__()
        self._values = values
        self._format = TextFormatter().format
        self._found: dict[str, str] = {}
        self._level = logging.WARNING

    def __enter__(self) -> Self:
        if self._values:
            root = logging.getLogger()
            self._level = root.level
            root.setLevel(min(root.level, logging.INFO))
            root.addHandler(self)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._values:
            logging.getLogger().removeHandler(self)
            logging.getLogger().setLevel(self._level)

    def emit(self, record: logging.LogRecord) -> None:
        """Look into a record, with its values and its traceback."""
        self._look(self._format(record), "the log")

    def look_into(self, states: Iterable[JSON]) -> None:
        """Look for the values in the states that objects have had."""
        for obj in states if self._values else ():
            place = f"{obj['kind']} {obj['metadata']['name']}"
            if obj["kind"] == "Event":
                self._look(str(obj), place)
            elif "status" in obj:
                self._look(str(obj["status"]), f"the status of {place}")

    def check(self) -> None:
        """Fail if a value was found."""
        found = "\n  ".join(self._found.values())
        assert not self._found, (
            f"users can read what must stay secret:\n  {found}\nLeave it out of log records, and of"
            " messages of errors and conditions: that of an SDK's error may have the whole request."
        )

    def _look(self, text: str, place: str) -> None:
        for value, description in self._values.items():
            if value in text and description not in self._found:
                excerpt = text.replace(value, "***")[:300]
                self._found[description] = f"{description} is in {place}: {excerpt}"
