"""Find mistakes in the content of bootstrap data, as far as their format is known."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Final

import yaml

_JINJA: Final = "## template: jinja"
_OTHER_HEADERS: Final = ("#!", "#include", "#cloud-", "#upstart", "#part-handler")
"""First lines of the other sorts of user data that cloud-init runs."""
_MIME: Final = re.compile(r"(content-type|mime-version): ", re.I)
_GZIP: Final = b"\x1f\x8b"
_VARIABLE: Final = re.compile(r"\{\{-? *(ds|v1|instance_id|local_hostname)\b")
"""A variable of cloud-init, which it replaces only below the line of a template."""
_OBJECT: Final = re.compile(r"<[\w. ]+ at 0x[0-9a-f]{6,}>")
"""What Python writes for an object or a function that has no text of its own."""


def find_mistakes(data: bytes, data_format: str) -> list[str]:
    """Return what keeps a machine from running the data; formats that are not known pass."""
    if data_format == "ignition":
        return _in_ignition(data)
    if data_format == "cloud-config" and not data.startswith(_GZIP):
        return _in_cloud_config(data)
    return []


def _in_ignition(data: bytes) -> list[str]:
    try:
        content = json.loads(data)
    except ValueError as error:
        return [f"they are not JSON: {error}"]
    version = content.get("ignition", {}).get("version") if isinstance(content, dict) else None
    found = [] if isinstance(version, str) else ["ignition.version, a text, is missing"]
    return found + _in_text(data.decode())


def _in_cloud_config(data: bytes) -> list[str]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return [f"they are not UTF-8: {error}"]
    first, _, rest = text.partition("\n")
    is_template = first.strip() == _JINJA
    header = rest.partition("\n")[0] if is_template else first
    if header.strip() != "#cloud-config":
        if header.startswith(_OTHER_HEADERS) or _MIME.match(header):
            return _in_text(text)
        return [f"cloud-init ignores them: the first line is {header[:40]!r}, not '#cloud-config'"]
    # With its statements, a template is not YAML yet.
    found = [] if is_template else _in_yaml(text)
    if not is_template and (variable := _VARIABLE.search(text)):
        found.append(f"`{variable[0]} ...` stays as it is without the first line {_JINJA!r}")
    return found + _in_text(text)


def _in_yaml(text: str) -> list[str]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        return [f"they are not YAML: {error}"]
    if not isinstance(root, yaml.MappingNode):
        return ["they are not a mapping, which cloud-init expects"]
    keys = Counter(str(key.value) for key, _ in root.value)
    repeated = ", ".join(name for name, count in keys.items() if count > 1)
    return [f"only the last of these keys counts: {repeated}"] if repeated else []


def _in_text(text: str) -> list[str]:
    found = _OBJECT.search(text)
    return [f"they have the object {found[0]} instead of its value"] if found else []
