"""Results of checks have the lives of their objects, and what managers logged meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

from capsmith.clusters.hiding import HIDDEN, hide_in_line
from capsmith.clusters.processes.kube import JSON, ApiError
from capsmith.judge.running import output
from capsmith.judge.running.contract import CoreObjects
from capsmith.judge.running.history import WatchedKind
from capsmith.judge.running.manager_logs import ManagerLogs, PodLogs
from capsmith.judge.running.model import (
    CheckOutcome,
    CheckResult,
    ConformanceCheck,
    ConformanceReport,
    Violated,
)
from capsmith.judge.running.run import run_checks
from tests.unit.judge.running.memory import AT_ONCE, NAMESPACE, DirectHistory, Memory, MemoryClient
from tests.unit.judge.running.test_run import MUST, RULES, EmptySession

KIND = WatchedKind("example.com/v1", "Box")
KEY = "-----BEGIN RSA PRIVATE KEY-----\nabcd\n-----END RSA PRIVATE KEY-----\n"


class BoxSession(EmptySession):
    """A session that watches boxes."""

    def kinds(self) -> list[WatchedKind]:
        return [KIND]


def make_session(log: Path) -> BoxSession:
    memory = Memory()
    client = MemoryClient(memory)
    core = CoreObjects("v1beta2", NAMESPACE, "v1.36.0")
    session = BoxSession(client, core, "v1beta2", AT_ONCE, secrets=frozenset({"hunter2!"}))
    session.history = DirectHistory(memory, [KIND])
    session.logs = ManagerLogs(lambda: {"manager": log})
    return session


def box(name: str) -> JSON:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": metadata}


def run(session: BoxSession, *checks: ConformanceCheck[BoxSession]) -> tuple[CheckResult, ...]:
    return run_checks(session, checks, RULES)


def check(name: str, function: object) -> ConformanceCheck[BoxSession]:
    assert callable(function)
    return ConformanceCheck(name, "It works.", (MUST,), function)


def test_a_check_has_the_objects_that_it_created_or_read(tmp_path: Path) -> None:
    session = make_session(tmp_path / "log")

    def create(session: BoxSession) -> None:
        session.client.create(box("one"))
        session.client.create(box("two"))

    first, second = run(
        session,
        check("create", create),
        check("read", lambda session: session.latest("Box", "two")),
    )
    assert [each.subject for each in first.lives] == ["Box test/one", "Box test/two"]
    assert [each.subject for each in second.lives] == ["Box test/two"]
    assert [each.what for each in second.lives[0].changes] == ["created"]
    assert second.lives[0].changes[0].seconds <= 0 <= first.lives[0].changes[0].seconds


def test_the_object_that_violates_a_rule_is_never_left_out(tmp_path: Path) -> None:
    session = make_session(tmp_path / "log")

    def create(session: BoxSession) -> None:
        for number in range(30):
            session.client.create(box(f"box-{number:02}"))
        raise Violated("it is wrong", session.subject("Box", "box-29"))

    (result,) = run(session, check("create", create))
    assert (len(result.lives), result.lives_left_out) == (20, 10)
    assert result.lives[-1].subject == "Box test/box-29"


def test_a_failure_has_what_managers_logged_during_the_check(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    session = make_session(log)

    def fail(_: BoxSession) -> None:
        with log.open("a") as file:
            file.write(f"login hunter2!\n{KEY}token: abcdefgh\n")
        raise Violated("the manager said hunter2!")

    def passes(_: BoxSession) -> None:
        with log.open("a") as file:
            file.write("later\n")

    failed, passed = run(session, check("fail", fail), check("pass", passes))
    ((name, lines),) = failed.logs
    assert name == "manager"
    assert lines == (f"login {HIDDEN}", *[HIDDEN] * 3, f"token: {HIDDEN}")
    assert (failed.message, passed.logs) == (f"the manager said {HIDDEN}", ())
    text = json.dumps(output.make_data(ConformanceReport("acme", "v1beta2", (failed, passed))))
    assert not any(each in text for each in ("hunter2!", "abcd", "before", "later"))


def test_a_private_key_that_began_before_the_check_is_hidden(tmp_path: Path) -> None:
    log = tmp_path / "log"
    begin, *rest = KEY.splitlines(keepends=True)
    log.write_text(begin)
    reader = ManagerLogs(lambda: {"manager": log, "missing": tmp_path / "missing"})
    reader.begin_check()
    with log.open("a") as file:
        file.write("".join(rest) + "end\n")
    assert reader.read(str) == (("manager", (HIDDEN, HIDDEN, "end")),)


class PodClient(MemoryClient):
    """A client of a cluster in which a manager runs as a Pod, whose log may be forbidden."""

    def __init__(self, text: str) -> None:
        super().__init__(Memory())
        self.text = text
        self.queries: list[dict[str, str] | None] = []
        self.resolve("v1", "Pod")
        metadata = {"name": "acme-0", "namespace": NAMESPACE}
        spec = {"containers": [{"name": "manager"}]}
        self.memory.write({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def request(
        self,
        method: str,
        path: str,
        *,
        body: JSON | None = None,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> JSON:
        if not path.endswith(f"/{NAMESPACE}/pods/acme-0/log"):
            return super().request(method, path, body=body, query=query)
        self.queries.append(query)
        if not self.text:
            raise ApiError(method, path, 403, "forbidden")
        return {"text": self.text}


def test_logs_of_pods_are_read_in_a_given_cluster() -> None:
    client = PodClient(f"time one\n{KEY}time token: abcdefgh\n")
    logs = PodLogs(client, [NAMESPACE, "other"])
    logs.begin_check()
    ((name, lines),) = logs.read(hide_in_line)
    assert (name, lines) == ("acme-0/manager", ("time one", *[HIDDEN] * 3, f"time token: {HIDDEN}"))
    (query,) = client.queries
    assert query is not None
    assert (query["container"], query["timestamps"]) == ("manager", "true")
    assert int(query["sinceSeconds"]) >= 1


def test_a_user_who_may_not_read_logs_gets_none() -> None:
    assert PodLogs(PodClient(""), [NAMESPACE]).read(str) == ()


def test_json_has_lives_and_logs_in_the_documented_form(tmp_path: Path) -> None:
    session = make_session(tmp_path / "log")
    (tmp_path / "log").write_text("")

    def fail(session: BoxSession) -> None:
        session.client.create(box("one"))
        (tmp_path / "log").write_text("line\n")
        raise Violated("wrong")

    (failed,) = run(session, check("fail", fail))
    assert failed.outcome is CheckOutcome.FAILED
    (result,) = output.make_data(ConformanceReport("acme", "v1beta2", (failed,)))["results"]
    (found,) = result["objects"]
    (change,) = found["changes"]
    assert found["object"] == "Box test/one"
    assert change == {"after": change["after"], "what": "created", "path": "", "writer": ""}
    assert result["logs"] == [{"manager": "manager", "lines": ["line"]}]
    assert result["objectsLeftOut"] == 0
    page = Path(__file__).parents[4] / "docs" / "how-to" / "conformance.md"
    text = page.read_text(encoding="utf-8")
    assert [key for key in (*result, *found, *change, "lines") if f"`{key}`" not in text] == []
