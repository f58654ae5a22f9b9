"""What the responses of an API server mean, and the parts of its URLs."""

from __future__ import annotations

import json
import re

# The API server's message when the webhook of core or of a manager does not respond, because that
# is busy or restarts. Nothing was stored, and the next attempt may succeed.
_WEBHOOK_AWAY = re.compile(r"failed calling webhook|conversion webhook for .{1,300}? failed: Post ")


def is_busy(status: int, text: str) -> bool:
    """Return whether to repeat a request. A change of a CRD reopens its storage: that is a 429."""
    away = status == 500 and _WEBHOOK_AWAY.search(text) is not None
    return away or status in (429, 503, 504)


def dry_run_query(dry_run: bool) -> dict[str, str]:
    """Return the query of a request that stores nothing, if it is one."""
    return {"dryRun": "All"} if dry_run else {}


def root_of(api_version: str) -> str:
    """Return the URL path of an API version."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def message_of(body: str) -> str:
    """Return the message of a Status, or the whole body."""
    try:
        parsed = json.loads(body)
    except ValueError:
        return body
    return str(parsed.get("message", body)) if isinstance(parsed, dict) else body
