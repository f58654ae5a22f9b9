"""Run checks one after another, and remove all objects that they create."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from typing import TypeVar

from capsmith.clusters.processes.errors import ManagerEnded, RequestError
from capsmith.clusters.processes.kube import ApiError
from capsmith.contract.model import Level, Rule
from capsmith.errors import CapsmithError
from capsmith.judge.running.base_session import BaseSession
from capsmith.judge.running.model import (
    CheckOutcome,
    CheckResult,
    ConformanceCheck,
    Selection,
    Skipped,
    Violated,
)
from capsmith.judge.running.recorder import CheckRecorder

S = TypeVar("S", bound=BaseSession)

_PERMISSIONS = "Use a management cluster that responds, and a user who can create the objects."
_DELETE = "Delete the namespace, and the machines that its objects refer to."
_ALL = Selection()
_RECOMMENDED = frozenset({Level.SHOULD, Level.MAY})


def run_checks(
    session: S,
    checks: Iterable[ConformanceCheck[S]],
    rules: Mapping[str, Rule],
    selection: Selection = _ALL,
    done: Callable[[CheckResult], None] = lambda result: None,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[CheckResult, ...]:
    """Run the selected checks and return their results in order.

    ``done`` receives each result as soon as it is known, and ``progress`` receives messages about
    the current step. ``rules`` are the rules of the provider's contract version.  All objects that
    the checks created are removed, even after an interruption.  Raises Refused if the namespace
    exists, RequestError if objects cannot be created or removed, and ManagerEnded if a manager that
    the run started has ended.
    """
    results = []
    with _requests("the run cannot start", _PERMISSIONS):
        session.create_namespace()
    try:
        with _requests("the run cannot start", _PERMISSIONS):
            session.start()
        selected = [check for check in checks if selection.includes(check, rules)]
        for number, check in enumerate(selected, 1):
            progress(f"check {number} of {len(selected)}: {check.title}")
            result = _result(session, check, rules)
            done(result)
            results.append(result)
    finally:
        with ExitStack() as ends:
            left = f"objects of the run are left in namespace {session.namespace}"
            ends.enter_context(_requests(left, _DELETE))
            # Callbacks run in reverse, each even if another one fails: objects are removed before
            # the watches end.
            ends.callback(session.history.stop)
            ends.callback(session.remove_applied)
            progress("removing what the run created")
            session.clean_up()
    return tuple(results)


@contextmanager
def _requests(what: str, hint: str) -> Iterator[None]:
    """Return a context that converts failed requests outside checks to RequestError.

    ``what`` and ``hint`` become parts of the error.
    """
    try:
        yield
    except (ApiError, OSError, HTTPException, LookupError) as error:
        raise RequestError(f"{what}: {error}", hint) from error


def skip_checks(
    checks: Iterable[ConformanceCheck[S]],
    rules: Mapping[str, Rule],
    selection: Selection,
    reason: str,
    done: Callable[[CheckResult], None],
) -> tuple[CheckResult, ...]:
    """Return a skipped result for each selected check, all with the same reason.

    ``done`` receives each of these results.
    """
    results = []
    for check in checks:
        if selection.includes(check, rules):
            violated = tuple(each for each in check.rules if each in rules)
            result = CheckResult(check.name, check.title, violated, CheckOutcome.SKIPPED, reason)
            done(result)
            results.append(result)
    return tuple(results)


def _result(session: S, check: ConformanceCheck[S], rules: Mapping[str, Rule]) -> CheckResult:
    violated = [rules[id] for id in check.rules if id in rules]
    began = time.monotonic()
    recorder = CheckRecorder(session)
    # The strictest rule decides: a check that also proves a MUST is not mere advice.
    is_advice = {rule.level for rule in violated} <= _RECOMMENDED
    violation = CheckOutcome.WARNING if is_advice else CheckOutcome.FAILED
    outcome, message, subject, path, hint = _outcome(session, check, violation)
    result = CheckResult(
        name=check.name,
        title=check.title,
        rules=tuple(rule.id for rule in violated),
        outcome=outcome,
        message=message,
        subject=subject,
        path=path,
        hint=hint or next((rule.hint for rule in violated if rule.hint), ""),
        links=tuple(dict.fromkeys(rule.source for rule in violated)),
        seconds=time.monotonic() - began,
    )
    return recorder.add_to(result)


def _outcome(
    session: S, check: ConformanceCheck[S], violation: CheckOutcome
) -> tuple[CheckOutcome, str, str, str, str]:
    """Run a check and return its outcome, message, object, path and hint.

    ``violation`` is the outcome if the check raises Violated.
    """
    try:
        check.run(session)
    except Skipped as skipped:
        return CheckOutcome.SKIPPED, str(skipped), "", "", ""
    except Violated as violated:
        return violation, str(violated), violated.subject, violated.path, violated.hint
    except ApiError as error:
        return CheckOutcome.FAILED, f"the API server refused a request: {error}", "", "", ""
    # The remaining checks still run, because a restarting API server only fails the current one.
    except (OSError, HTTPException) as error:
        return CheckOutcome.FAILED, f"the API server did not respond: {error}", "", "", ""
    except ManagerEnded:
        raise
    except CapsmithError as error:
        return CheckOutcome.FAILED, str(error), "", "", error.finding.hint
    return CheckOutcome.PASSED, "", "", "", ""
