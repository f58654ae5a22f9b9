"""Faults of a simulated cloud: each does what it says, and the seed decides when."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from capsmith_runtime.testing.faults import (
    NONE,
    RETRY_SECONDS,
    VARIABLE,
    CloudUnavailable,
    Faults,
    LoginRefused,
    RateLimited,
    inject_faults,
)
from tests.runtime.support.waiting import eventually


class Cloud:
    """Servers by external id, and a method that is no call of the cloud."""

    def __init__(self, folder: Path) -> None:
        self.existing: list[str] = []
        inject_faults(self, folder)

    def find_server(self, external_id: str) -> str | None:
        return external_id if external_id in self.existing else None

    def create_server(self, external_id: str, *, size: str = "small") -> str:
        if self.find_server(external_id) is None:
            self.existing.append(external_id)
        return external_id

    def delete_server(self, external_id: str) -> None:
        self.existing.remove(external_id)

    def endpoint(self) -> str:
        return "127.0.0.1"


NewCloud = Callable[[str], Cloud]


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NewCloud:
    """Return a function that creates a cloud with the given faults."""

    def new(text: str) -> Cloud:
        monkeypatch.setenv(VARIABLE, text)
        return Cloud(tmp_path)

    return new


def test_faults_are_a_list() -> None:
    faults = Faults.parse("error=0.5, late=3,seed=7")
    assert faults == Faults(error=0.5, late=3, seed=7)
    assert Faults.parse(str(faults)) == faults
    assert Faults.parse("") == NONE


@pytest.mark.parametrize("text", ["oops=1", "error", "error=x", "error=2", "late=-1", "slow=-1"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Faults.parse(text)


def test_without_the_variable_nothing_is_wrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert list(vars(Cloud(tmp_path))) == ["existing"]
    assert list(tmp_path.iterdir()) == []


def test_calls_of_a_system_that_allocates_fail_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class System:
        def allocate(self, external_id: str) -> str:
            return external_id

        def release_address(self, external_id: str) -> None:
            raise AssertionError(external_id)

    monkeypatch.setenv(VARIABLE, "error=1")
    system = System()
    inject_faults(system, tmp_path)
    for call in (system.allocate, system.release_address):
        with pytest.raises(CloudUnavailable):
            call("a")


@pytest.mark.parametrize(
    ("text", "error", "retry_after", "has_effect"),
    [
        ("error=1", CloudUnavailable, None, False),
        ("limit=1", RateLimited, RETRY_SECONDS, False),
        ("lost=1", CloudUnavailable, None, True),
    ],
)
def test_a_call_fails(
    cloud: NewCloud,
    text: str,
    error: type[CloudUnavailable | RateLimited],
    retry_after: float | None,
    has_effect: bool,
) -> None:
    broken = cloud(text)
    with pytest.raises(error) as caught:
        broken.create_server("a", size="large")
    assert caught.value.retry_after == retry_after
    assert broken.existing == (["a"] if has_effect else [])
    assert broken.endpoint() == "127.0.0.1"


def test_a_share_of_the_calls_fails_and_the_seed_decides_which(cloud: NewCloud) -> None:
    def outcomes(text: str) -> list[bool]:
        broken = cloud(text)
        return [_fails(broken, f"s{number % 10}") for number in range(200)]

    first = outcomes("error=0.3,seed=1")
    assert first == outcomes("error=0.3,seed=1")
    assert first != outcomes("error=0.3,seed=2")
    assert 40 < sum(first) < 80


def _fails(broken: Cloud, external_id: str) -> bool:
    try:
        broken.create_server(external_id)
    except CloudUnavailable:
        return True
    return False


def test_a_new_server_is_listed_late_in_all_processes(cloud: NewCloud) -> None:
    """A manager that was killed after the creation does not find it either."""
    lagging = cloud("late=3")
    assert lagging.find_server("a") is None
    assert lagging.create_server("a") == "a"
    assert lagging.find_server("a") is None
    another = cloud("late=3")
    another.existing = lagging.existing
    assert another.create_server("a") == "a"
    found = [another.find_server("a"), lagging.find_server("a"), another.find_server("a")]
    assert found == [None, None, "a"]
    assert lagging.existing == ["a"]


def test_a_server_that_was_deleted_is_not_remembered(cloud: NewCloud, tmp_path: Path) -> None:
    lagging = cloud("late=100")
    lagging.create_server("a")
    assert len(list((tmp_path / "late").iterdir())) == 1
    lagging.delete_server("a")
    assert list((tmp_path / "late").iterdir()) == []


def test_a_server_disappears_after_it_was_found(cloud: NewCloud) -> None:
    hostile = cloud("vanish=1")
    hostile.create_server("a")
    assert hostile.find_server("a") == "a"
    assert hostile.existing == []
    assert hostile.find_server("a") is None


def test_a_call_takes_its_time(cloud: NewCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    cloud("slow=8").create_server("a")
    before, after = pauses
    assert before == after
    assert 0 < before <= 4


async def test_a_call_hangs_until_the_fault_ends(cloud: NewCloud, tmp_path: Path) -> None:
    file = tmp_path / "faults"
    hanging = cloud(f"@{file}")
    hanging.create_server("before")
    file.write_text("hang=1")
    errors: list[Exception] = []

    def create() -> None:
        try:
            hanging.create_server("a")
        except CloudUnavailable as error:
            errors.append(error)

    thread = threading.Thread(target=create, daemon=True)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    file.write_text("")
    await eventually(lambda: errors)
    assert hanging.existing == ["before"]


def test_refused_logins_have_no_effect(cloud: NewCloud) -> None:
    refusing = cloud("refuse=1")
    with pytest.raises(LoginRefused, match="401 Unauthorized"):
        refusing.create_server("one")
    assert refusing.existing == []
