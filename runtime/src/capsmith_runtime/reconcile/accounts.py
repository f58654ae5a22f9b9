"""The cloud account in which an object's infrastructure was created.

An identity can be changed to credentials of another account, whose API does not find the object's
infrastructure.  The author's code would conclude that it is gone, and create it again or forget it.
The account is therefore recorded before the first call that may create something; a policy allows
only the manager and administrators to change the record.
"""

from __future__ import annotations

from typing import Any

from capsmith_runtime.contract import constants, metadata, records
from capsmith_runtime.contract.model import Object
from capsmith_runtime.errors import ReconcileError
from capsmith_runtime.reconcile.kinds import Kind
from capsmith_runtime.reconcile.patcher import Patcher


def read_recorded(obj: Object, group: str) -> str | None:
    """Return the recorded account of an object's infrastructure, or None if none is recorded."""
    return records.read(obj, group, records.ACCOUNT)


class AccountCheck:
    """Compares the account of a call's session with the account recorded on the object."""

    def __init__(self, kind: Kind[Any], patcher: Patcher) -> None:
        self._kind = kind
        self._patcher = patcher
        self.is_writing = False
        """Whether the account is being recorded; still true if the request failed."""

    async def run(self, account: str | None) -> None:
        """Compare the session's account with the recorded one, or record it if there is none yet.

        If ``account`` is None, nothing is compared.  An empty account is unknown, and is never
        recorded.  An account is recorded only for an object that has the finalizer and is not being
        deleted.  Raises ReconcileError if another account is recorded, even if ``account`` is
        empty.
        """
        obj, group = self._patcher.obj, self._kind.resource.group
        recorded = read_recorded(obj, group)
        if account is None or recorded == account:
            return
        if recorded is not None:
            raise ReconcileError(
                constants.REASON_ACCOUNT_CHANGED,
                f"the infrastructure is in account {recorded}, but the identity's credentials are"
                f" for {account or 'an unknown account'}: nothing is created, changed or deleted",
            )
        # An object without finalizer has no infrastructure; one that is being deleted gets none.
        has_finalizer = self._kind.finalizer in metadata.finalizers(obj)
        if account and has_finalizer and not metadata.is_deleting(obj):
            self.is_writing = True
            await self._patcher.record(records.ACCOUNT, account)
            self.is_writing = False
