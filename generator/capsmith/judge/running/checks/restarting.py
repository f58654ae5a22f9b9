"""The manager crashes and starts again."""

from __future__ import annotations

from capsmith.judge.running.checks.shared import FIRST, MAIN, main_machine
from capsmith.judge.running.contract import provider_id
from capsmith.judge.running.model import Check, Skipped, Violated
from capsmith.judge.running.session import Session

_INTERRUPTED = "main-interrupted"
_LATER = "main-after-restart"


def _restart(session: Session) -> None:
    if session.manager is None:
        raise Skipped("this run did not start the manager")
    before = main_machine(session)
    kind = session.objects.machine_kind
    session.create_machine(MAIN, _INTERRUPTED)
    started = session.history.wait(
        lambda: len(session.history.states(kind, _INTERRUPTED)) > 1, session.timing.patience
    )
    if not started:
        raise Violated("the manager did not react to it", session.subject(kind, _INTERRUPTED))
    session.manager.kill()
    session.manager.start()
    session.wait_provisioned(kind, _INTERRUPTED)
    session.create_machine(MAIN, _LATER)
    session.wait_provisioned(kind, _LATER)
    session.settle()
    _require_same(session, kind, FIRST, provider_id(before))
    ids = [provider_id(each) for each in session.history.states(kind, _INTERRUPTED)]
    _require_same(session, kind, _INTERRUPTED, next(each for each in ids if each))


def _require_same(session: Session, kind: str, name: str, expected: str) -> None:
    for state in session.history.states(kind, name):
        found = provider_id(state)
        if found and found != expected:
            message = f"after a restart its provider ID is {found} instead of {expected}"
            raise Violated(message, session.subject(kind, name), "spec.providerID")


RESTARTING = (
    Check(
        "restart",
        "A manager that crashes continues after its restart, and creates nothing twice.",
        ("SM-09",),
        _restart,
    ),
)
