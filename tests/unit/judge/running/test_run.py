"""A run turns what checks raise into results, and removes what they created whatever happens."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from capsmith import resources
from capsmith.clusters.processes.errors import ManagerEnded, RequestError
from capsmith.clusters.processes.kube import ApiError
from capsmith.contract.load import load_rules
from capsmith.errors import CapsmithError, Refused
from capsmith.judge.running.base_session import BaseSession
from capsmith.judge.running.contract import CoreObjects
from capsmith.judge.running.history import WatchedKind
from capsmith.judge.running.model import (
    CheckOutcome,
    CheckResult,
    ConformanceCheck,
    Selection,
    Skipped,
    Violated,
)
from capsmith.judge.running.run import run_checks
from tests.unit.judge.running.memory import AT_ONCE, NAMESPACE, Memory, MemoryClient

RULES = load_rules(resources.schemas(), "v1beta2")
MUST, SHOULD = "IM-03", "ST-06"


class EmptySession(BaseSession):
    """A session without kinds, which counts its ends."""

    ended = 0

    def kinds(self) -> list[WatchedKind]:
        return []

    def clean_up(self) -> None:
        self.ended += 1
        self.client.delete(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        )


def session(memory: Memory | None = None) -> EmptySession:
    client = MemoryClient(memory or Memory())
    return EmptySession(client, CoreObjects("v1beta2", NAMESPACE, "v1.36.0"), "v1beta2", AT_ONCE)


def raising(error: BaseException | None) -> Callable[[EmptySession], None]:
    def check(_: EmptySession) -> None:
        if error is not None:
            raise error

    return check


def check(
    error: BaseException | None = None, *rules: str, name: str = "one"
) -> ConformanceCheck[EmptySession]:
    return ConformanceCheck(name, "It works.", rules or (MUST,), raising(error))


def only(results: tuple[CheckResult, ...]) -> CheckResult:
    (result,) = results
    return result


def test_rules_of_the_test_have_their_levels() -> None:
    assert (RULES[MUST].level.value, RULES[SHOULD].level.value) == ("MUST", "SHOULD")


@pytest.mark.parametrize(
    ("error", "rules", "outcome", "message"),
    [
        (None, (MUST,), CheckOutcome.PASSED, ""),
        (Skipped("not here"), (MUST,), CheckOutcome.SKIPPED, "not here"),
        (Violated("wrong"), (MUST,), CheckOutcome.FAILED, "wrong"),
        (Violated("wrong"), (SHOULD,), CheckOutcome.WARNING, "wrong"),
        (Violated("wrong"), (SHOULD, MUST), CheckOutcome.FAILED, "wrong"),
        (ApiError("GET", "/", 403, "no"), (SHOULD,), CheckOutcome.FAILED, "refused a request"),
        (OSError("gone"), (SHOULD,), CheckOutcome.FAILED, "did not respond: gone"),
        (CapsmithError("x", "broken", hint=""), (SHOULD,), CheckOutcome.FAILED, "broken"),
    ],
)
def test_outcomes(
    error: Exception | None, rules: tuple[str, ...], outcome: CheckOutcome, message: str
) -> None:
    result = only(run_checks(session(), [check(error, *rules)], RULES))
    assert result.outcome is outcome
    assert message in result.message
    assert result.rules == rules


def test_a_violation_says_where_and_why() -> None:
    error = Violated("wrong", "Box test/one", "spec.size", "Make it larger.")
    result = only(run_checks(session(), [check(error)], RULES))
    assert (result.subject, result.path) == ("Box test/one", "spec.size")
    assert result.hint == "Make it larger."
    assert result.links == (RULES[MUST].source,)


def test_progress_says_which_of_the_selected_checks_runs() -> None:
    checks = [check(name="one"), check(None, "XX-99", name="of-no-contract"), check(name="two")]
    told: list[str] = []
    run_checks(session(), checks, RULES, progress=told.append)
    assert told[:2] == ["check 1 of 2: It works.", "check 2 of 2: It works."]


def test_a_check_runs_only_if_its_contract_has_a_rule_and_it_is_selected() -> None:
    checks = [
        check(name="one"),
        check(None, "XX-99", name="of-no-contract"),
        check(None, SHOULD, name="other"),
    ]
    run = run_checks(session(), checks, RULES)
    assert [result.name for result in run] == ["one", "other"]
    run = run_checks(session(), checks, RULES, Selection(frozenset({"ST"})))
    assert [result.name for result in run] == ["other"]
    run = run_checks(session(), checks, RULES, Selection(ignore=frozenset({"other"})))
    assert [result.name for result in run] == ["one"]


def test_results_are_told_at_once_and_everything_is_removed() -> None:
    told: list[str] = []
    running = session()
    with pytest.raises(KeyboardInterrupt):
        run_checks(
            running,
            [check(name="one"), check(KeyboardInterrupt(), name="two")],
            RULES,
            done=lambda result: told.append(result.name),
        )
    assert told == ["one"]
    assert running.ended == 1
    assert running.client.find("v1", "Namespace", NAMESPACE) is None


def test_the_namespace_of_another_run_is_left_alone() -> None:
    running = session()
    running.create_namespace()
    with pytest.raises(Refused, match="already exists"):
        run_checks(running, [check()], RULES)
    assert running.ended == 0


def test_what_the_run_applied_elsewhere_is_removed() -> None:
    identity = {"apiVersion": "example.com/v1", "kind": "Identity"}
    known = {**identity, "metadata": {"name": "known", "namespace": "other"}}
    new = {**identity, "metadata": {"name": "new", "namespace": "other"}}
    running = session()
    running.client.apply(known)
    running.needed += [known, new]
    run_checks(running, [check()], RULES)
    assert running.client.find("example.com/v1", "Identity", "known", "other") is not None
    assert running.client.find("example.com/v1", "Identity", "new", "other") is None


def test_objects_without_a_namespace_are_created_in_that_of_the_run() -> None:
    host = {"apiVersion": "example.com/v1", "kind": "Host", "metadata": {"name": "one"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}}
    running = session()
    running.needed += [host, node]
    running.create_namespace()
    running.start()
    assert running.client.find("example.com/v1", "Host", "one", NAMESPACE) is not None
    assert running.client.find("v1", "Node", "one") is not None


def test_a_run_that_cannot_start_says_why() -> None:
    memory = Memory()
    memory.admit = lambda old, new, dry_run: "forbidden"
    running = session(memory)
    with pytest.raises(RequestError, match="the run cannot start"):
        run_checks(running, [check()], RULES)


def test_a_manager_that_has_ended_ends_the_run() -> None:
    def look() -> None:
        raise ManagerEnded("control-plane exited with code 1")

    def wait(running: EmptySession) -> None:
        running.history.wait(lambda: False, 600.0)

    running = session()
    running.history.look = look
    waiting = ConformanceCheck("one", "It works.", (MUST,), wait)
    with pytest.raises(ManagerEnded, match="exited with code 1"):
        run_checks(running, [waiting, check()], RULES)
    assert running.ended == 1
