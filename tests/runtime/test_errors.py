"""The one tree of errors: its drawing, and what tells requests of the author from others."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from capsmith_runtime import errors
from capsmith_runtime.errors import (
    ApiError,
    ConflictError,
    NotFoundError,
    ReconcileError,
    create_api_error,
    error_label,
)
from capsmith_runtime.reconcile.results import State, Waiting
from capsmith_runtime.reconcile.status_reporter import describe_failure


def test_the_drawing_is_the_tree() -> None:
    drawn: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for indent, name in re.findall(
        r"^([ │├└─]*)(\w+Error) {2,}", inspect.getdoc(errors) or "", re.MULTILINE
    ):
        above = [each for each in above if each[0] < len(indent)]
        drawn[name] = above[-1][1] if above else "Exception"
        above.append((len(indent), name))
    tree = {
        name: value.__bases__[0].__name__
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and name != "CallEndedError"
    }
    assert drawn == tree


def test_a_request_of_the_runtime_is_an_internal_error_for_users() -> None:
    error = create_api_error(404, "NotFound", "no Secret", 2.0)

    assert type(error) is NotFoundError
    assert str(error) == "404 NotFound: no Secret"
    assert describe_failure(error) == ("InternalError", f"NotFoundError: {error}")


def test_a_request_of_the_author_has_its_own_reason() -> None:
    error = create_api_error(404, "NotFound", "no Secret", 2.0).for_request("get Secret a")

    assert (type(error), error.status, error.retry_after) == (NotFoundError, 404, 2.0)
    expected = ("KubernetesObjectNotFound", "get Secret a: 404 NotFound: no Secret")
    assert describe_failure(error) == expected


@pytest.mark.parametrize(
    ("error", "label"),
    [
        (create_api_error(409, "Conflict", ""), "Conflict"),
        (create_api_error(409, "AlreadyExists", ""), "AlreadyExists"),
        (create_api_error(0, "ConnectError", ""), "Unreachable"),
        (create_api_error(422, "Invalid", ""), "Invalid"),
        (create_api_error(503, "", ""), "ServerError"),
        (create_api_error(400, "BadRequest", ""), "ApiError"),
        (ConflictError("apply ConfigMap a"), "ConflictError"),
        (OSError(), "OSError"),
    ],
)
def test_metrics_keep_the_names_that_released_alerts_use(error: Exception, label: str) -> None:
    assert error_label(error) == label


def test_an_error_of_the_author_s_own_test_has_the_status_of_its_class() -> None:
    assert (ApiError("").status, NotFoundError("no Pod").status) == (0, 404)


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf"])
def test_a_delay_that_never_ends_counts_as_none(seconds: str) -> None:
    """With a header of a cloud as the delay, the method was not called until a restart."""
    error = ReconcileError("Throttled", "later", retry_after=float(seconds))
    assert error.retry_after is None


@pytest.mark.parametrize(
    "create", [Waiting, lambda reason, **more: State(reason=reason, **more)], ids=["wait", "state"]
)
def test_a_delay_that_is_no_number_is_refused(create: Any) -> None:
    """It counted as 0 seconds: the method was called all the time."""
    with pytest.raises(ValueError, match="requeue_after"):
        create("Creating", requeue_after=float("nan"))
    assert create("Creating", requeue_after=5).requeue_after == 5
