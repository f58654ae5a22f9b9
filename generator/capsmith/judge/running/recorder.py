"""Add object changes and managers' log lines during a check to its result."""

from __future__ import annotations

from capsmith.clusters.hiding import hide_in_line, hide_values
from capsmith.judge.running.base_session import BaseSession
from capsmith.judge.running.life import list_changes
from capsmith.judge.running.model import CheckOutcome, CheckResult, ObjectLife

_MAX_OBJECTS = 20
"""Maximum number of objects with changes in a result; some checks read all objects of a run."""
_MAX_CHANGES = 100
"""Number of changes to keep of each object, the last ones."""
_LOGGED = (CheckOutcome.FAILED, CheckOutcome.WARNING)


class CheckRecorder:
    """Collects object changes and managers' log lines during one check."""

    def __init__(self, session: BaseSession) -> None:
        """Start recording. Create the recorder immediately before the check runs."""
        self._session = session
        self._begin = session.history.begin_check()
        session.logs.begin_check()

    def add_to(self, result: CheckResult) -> CheckResult:
        """Return a copy of ``result`` with the changes to objects and, on a failure, the logs.

        Call this as soon as the check has ended.  Secret values are removed.
        """
        lives = self._list_lives()
        # The object that violates a rule comes first, then what has changed since the check began.
        ranks = {
            life.subject: (life.subject != result.subject, life.changes[-1].seconds < 0)
            for life in lives
            if life.changes
        }
        chosen = set(sorted(ranks, key=lambda subject: ranks[subject])[:_MAX_OBJECTS])
        return result._replace(
            message=hide_values(result.message, self._session.secrets),
            lives=tuple(life for life in lives if life.subject in chosen),
            lives_left_out=len(ranks) - len(chosen),
            logs=self._session.logs.read(self._hide) if result.outcome in _LOGGED else (),
        )

    def _hide(self, text: str) -> str:
        return hide_in_line(hide_values(text, self._session.secrets))

    def _list_lives(self) -> list[ObjectLife]:
        return [
            ObjectLife(
                self._session.subject(kind, name),
                list_changes(states, self._begin, self._hide)[-_MAX_CHANGES:],
            )
            for (kind, name), states in self._session.history.list_records(self._begin).items()
        ]
