"""Faults of AWS that moto does not have, and one that it has."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

from botocore.exceptions import ClientError, ConnectTimeoutError
from botocore.hooks import BaseEventHooks
from capsmith_runtime.testing.faults import Faults
from moto.ec2.models.instances import InstanceBackend

MAX_LATE = 100
_current: dict[int, Faults] = {}
"""The faults of each client, by the id of its event system: a call that hangs looks here."""


def inject_faults(events: BaseEventHooks, faults: Faults) -> None:
    """Let the calls of a client fail from now on, with the events of botocore."""
    if faults.vanish:
        raise NotImplementedError("instances vanish by remove_server")
    if faults.late > MAX_LATE:
        # Deleted in these seconds, an instance whose id was not recorded either would stay.
        raise NotImplementedError("EC2 lists an instance after a few seconds")
    key, searches = id(events), Counter[str]()
    _current[key] = faults

    def before(model: Any, **_: Any) -> None:
        while _current[key].hang:
            time.sleep(0.01)
        if faults.hang or random.random() < faults.error:
            raise ConnectTimeoutError(endpoint_url="moto")
        if random.random() < faults.limit:
            error = {"Code": "RequestLimitExceeded", "Message": "Request limit exceeded."}
            raise ClientError({"Error": error}, model.name)  # type: ignore[typeddict-item]
        time.sleep(random.uniform(0, faults.slow))

    def after(model: Any, parsed: Any, **_: Any) -> None:
        if random.random() < faults.lost:
            raise ConnectTimeoutError(endpoint_url="moto")
        if model.name == "DescribeInstances":
            for reservation in parsed["Reservations"]:
                found = [each["InstanceId"] for each in reservation["Instances"]]
                searches.update(found)
                if any(searches[each] <= faults.late for each in found):
                    reservation["Instances"] = []

    for event, handler in (("before-call", before), ("after-call", after)):
        events.unregister(event, unique_id=f"faults-{event}")
        events.register(event, handler, unique_id=f"faults-{event}")


def honour_client_tokens() -> None:
    """Let moto return the same instance for the same client token, as EC2 does."""
    run, lock = InstanceBackend.run_instances, threading.Lock()

    def run_once(self: InstanceBackend, *args: Any, **kwargs: Any) -> Any:
        with lock:
            for reservation in self.reservations.values():
                if reservation.instances[0].client_token == kwargs["client_token"]:
                    return reservation
            return run(self, *args, **kwargs)

    InstanceBackend.run_instances = run_once  # type: ignore[method-assign]
