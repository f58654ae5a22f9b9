"""A repository whose author keeps the client of the cloud in a session passes its own tools."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.functional.conftest import Repository
from tests.golden.cases import cases, generated

IMPORTS = """from pathlib import Path

from capsmith_runtime.infrastructure import Credentials, SessionFactory
"""
FACTORY = '''

class CloudSessions(SessionFactory[SimulatedCloud]):
    """Opens a client of the cloud for each identity."""

    rate = 500.0
    burst = 100

    def open(self, credentials: Credentials) -> SimulatedCloud:
        """Return a client, after a login."""
        cloud = SimulatedCloud()
        (cloud.folder / "sessions.log").open("a").write(f"open {len(credentials['token'])}\\n")
        return cloud

    def close(self, session: SimulatedCloud) -> None:
        """End the login."""
        (session.folder / "sessions.log").open("a").write("close\\n")

    def readyz(self) -> None:
        """Fail while the cloud is not there."""
        if not SimulatedCloud().folder.is_dir():
            raise RuntimeError("the cloud is not there")
'''
TEST = '''

class TestSession(InfrastructureConformance):
    """The session is opened once, and closed with the manager."""

    @scenario
    async def test_one_session(self, env: InfrastructureEnvironment, tmp_path: Path) -> None:
        cluster = await env.running_cluster()
        for name in ("m1", "m2"):
            await env.running_machine(cluster, name)
        await env.stop()
        opened, closed = (tmp_path / "sessions.log").read_text().splitlines()
        assert (opened.split()[0], closed) == ("open", "close")
'''
TEST_HEAD = """\"\"\"The session of the cloud.\"\"\"

from __future__ import annotations

from pathlib import Path

from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.infrastructure.base import InfrastructureConformance
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment

from .test_conformance import PROVIDER

__all__ = ["PROVIDER", "TestSession"]
"""


@pytest.fixture(scope="module")
def authored(tmp_path_factory: pytest.TempPathFactory, scratch: Path) -> Repository:
    """Return the example acme, with the simulated cloud as its session."""
    (case,) = (each for each in cases() if each.name == "acme")
    folder = tmp_path_factory.mktemp("sessions") / "repository"
    generated(case, folder)
    repository = Repository(folder, scratch)
    source = folder / "src" / repository.package
    cloud = source / "cloud.py"
    text = cloud.read_text(encoding="utf-8").replace("from pathlib import Path\n", IMPORTS, 1)
    cloud.write_text(text + FACTORY, encoding="utf-8")
    for name, scope in (("machine", "machine"), ("cluster", "cluster")):
        _use_session(source / "controllers" / f"acme_{name}.py", scope)
        _test_with_session(folder / "tests" / f"test_acme_{name}.py")
    (folder / "tests" / "test_session.py").write_text(TEST_HEAD + TEST, encoding="utf-8")
    return repository


def _use_session(path: Path, scope: str) -> None:
    text = path.read_text(encoding="utf-8")
    constructor = re.compile(r"    def __init__\(.*\n.*SimulatedCloud\(\)\n")
    text, count = constructor.subn("    session_factory = CloudSessions\n", text)
    assert count == 1
    text = text.replace("import SimulatedCloud", "import CloudSessions")
    text = text.replace("self._cloud", f"{scope}.session(CloudSessions)")
    path.write_text(text, encoding="utf-8")


def _test_with_session(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    text = text.replace("Reconciler(cloud)", "Reconciler()")
    text = re.sub(r"(testing\.infra_\w+\(SPEC)", r"\1, session=cloud", text)
    path.write_text(text, encoding="utf-8")


def test_types_and_lint(authored: Repository) -> None:
    authored.python("-m", "ruff", "check", "--fix", "--select=I", ".")
    authored.python("-m", "black", "--quiet", ".")

    assert "Success" in authored.python("-m", "mypy")
    authored.python("-m", "ruff", "check", ".")


def test_its_own_tests(authored: Repository) -> None:
    output = authored.python("-m", "pytest", "-q", "-rp", "-p", "no:cacheprovider")

    assert "PASSED tests/test_session.py::TestSession::test_one_session" in output
