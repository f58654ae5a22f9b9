"""Memory of a process with a new SDK client for each call: ``python -m benchmarks.clients``.

Such clients are graphs of cycles, which only the garbage collector frees.  It is set as managers
set it, beside as many cached objects as a manager may have.  No request is sent.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections import deque
from pathlib import Path
from typing import Any

import boto3

from benchmarks.timing import table
from capsmith_runtime.kube.process import GcPauseLimiter

_CACHED = 5_000
_ALIVE = 10
"""Number of calls that run at the same time: the workers of a kind."""
_GROWTH = 1.2
"""The memory at the end may exceed that after a tenth of the calls by this factor, at most."""


def resident() -> int:
    """Return the memory of this process in MiB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(each for each in status.splitlines() if each.startswith("VmRSS:"))
    return int(line.split()[1]) // 1024


def create_client(service: str) -> Any:
    """Return a new client of a service of AWS, with a session of its own."""
    # Its type has an overload for each service.
    session: Any = boto3.Session(
        aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1"
    )
    return session.client(service)


def main() -> int:
    """Make the clients, print the memory after each tenth, and return 1 if it has grown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--service", default="ec2", help="EC2 has the largest clients")
    arguments = parser.parse_args()
    calls: int = arguments.calls
    GcPauseLimiter().start()
    cached = [{"metadata": {"name": str(each)}, "spec": {"x": [each]}} for each in range(_CACHED)]
    alive: deque[Any] = deque(maxlen=_ALIVE)
    rows, peak = [("calls", "RSS, MiB")], 0
    for number in range(1, calls + 1):
        alive.append(create_client(arguments.service))
        peak = max(peak, resident())
        if number % max(1, calls // 10) == 0:
            rows.append((str(number), str(resident())))
            print(f"{number} calls, {gc.get_freeze_count()} objects frozen", file=sys.stderr)
    table(rows)
    print(f"highest: {peak} MiB, with {len(cached)} objects in a cache")
    return int(float(rows[-1][1]) > _GROWTH * float(rows[1][1]))


if __name__ == "__main__":
    sys.exit(main())
