"""Faults of AWS that moto does not have, and one that it has."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from boto3.session import Session
from botocore.exceptions import ClientError, ConnectTimeoutError
from capsmith_runtime.testing.faults import Faults
from moto.ec2.models.instances import InstanceBackend

MAX_LATE = 100
_FULL = {"CreateVpc": "VpcLimitExceeded", "RunInstances": "InsufficientInstanceCapacity"}
"""Errors of creations while no capacity or quota is left."""


@dataclass
class FaultInjector:
    """Lets calls of the clients of a session fail, with the events of botocore."""

    faults: Faults = field(default_factory=Faults)
    _searches: Counter[str] = field(default_factory=Counter)

    def install(self, session: Session) -> None:
        """Reach all clients that the session creates from now on."""
        session.events.register("before-call", self._before)
        session.events.register("after-call", self._after)

    def simulate(self, faults: Faults) -> None:
        """Let calls fail from now on."""
        if faults.vanish:
            raise NotImplementedError("instances vanish by remove_server")
        if faults.late > MAX_LATE:
            raise NotImplementedError("EC2 lists an instance after a few seconds")
        self.faults = faults
        self._searches.clear()

    def _before(self, model: Any, **_: Any) -> None:
        faults = self.faults
        while self.faults.hang:
            time.sleep(0.01)
        if faults.hang or random.random() < faults.error:
            raise ConnectTimeoutError(endpoint_url="moto")
        if random.random() < faults.refuse:
            raise _refusal(model, "UnauthorizedOperation", "You are not authorized.")
        if random.random() < faults.limit:
            raise _refusal(model, "RequestLimitExceeded", "Request limit exceeded.")
        if (code := _FULL.get(model.name)) and random.random() < faults.full:
            raise _refusal(model, code, "There is no capacity or quota left.")
        time.sleep(random.uniform(0, faults.slow))

    def _after(self, model: Any, parsed: Any, **_: Any) -> None:
        if random.random() < self.faults.lost:
            raise ConnectTimeoutError(endpoint_url="moto")
        if model.name == "DescribeInstances":
            for reservation in parsed.get("Reservations", ()):
                found = [each["InstanceId"] for each in reservation["Instances"]]
                self._searches.update(found)
                if any(self._searches[each] <= self.faults.late for each in found):
                    reservation["Instances"] = []


def _refusal(model: Any, code: str, message: str) -> ClientError:
    error: Any = {"Error": {"Code": code, "Message": message}}
    return ClientError(error, model.name)


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
