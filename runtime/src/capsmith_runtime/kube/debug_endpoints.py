"""The paths below ``/debug``, with the names that Cluster API's diagnostics have where it has them.

The caller must have checked that the client is authorized.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from capsmith_runtime.kube import log
from capsmith_runtime.kube.http_server import Request, Response, text_response
from capsmith_runtime.kube.state_dump import describe_process

PREFIX: Final = "/debug/"
LOG_LEVEL: Final = "/debug/flags/v"
"""Path of the log level: GET returns the verbosity, PUT sets it, as with klog (``-v``)."""
DUMP: Final = "/debug/dump"
"""Path of the process's tasks, threads and memory."""
_MAX_VERBOSITY: Final = 10
_log = log.get_logger("diagnostics")


async def handle_debug_request(request: Request) -> Response:
    """Return the response to an authorized request whose path begins with `PREFIX`."""
    if request.path == LOG_LEVEL:
        return _handle_log_level(request)
    if request.path != DUMP:
        return text_response(HTTPStatus.NOT_FOUND)
    if request.method not in ("GET", "HEAD"):
        return text_response(HTTPStatus.METHOD_NOT_ALLOWED, allow="GET")
    return text_response(HTTPStatus.OK, (await describe_process()).rstrip("\n"))


def _handle_log_level(request: Request) -> Response:
    if request.method in ("GET", "HEAD"):
        return text_response(HTTPStatus.OK, str(log.get_verbosity()))
    if request.method != "PUT":
        return text_response(HTTPStatus.METHOD_NOT_ALLOWED, allow="GET, PUT")
    digits = request.body.strip()
    if not digits.isdigit() or int(digits[:3]) > _MAX_VERBOSITY or len(digits) > 2:
        message = f"the body must be a verbosity from 0 to {_MAX_VERBOSITY}"
        return text_response(HTTPStatus.BAD_REQUEST, message)
    before, level = log.get_verbosity(), int(digits)
    log.set_verbosity(level)
    _log.info("the verbosity has changed", before=before, verbosity=level)
    return text_response(HTTPStatus.OK, f"verbosity is {level}")
