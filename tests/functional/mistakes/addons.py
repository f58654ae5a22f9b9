"""Mistakes in reconcilers of add-ons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.functional.mistakes.base import Kit, Mistake, edit_controller, read_example

_LAMP = "beacon_lamp"
_APPLIES = "        workload.apply(\n"
_DELETES = "workload.delete(CONFIG_MAP, addon.name, NAMESPACE)"
_NORMAL_LAMP = "    def reconcile_normal(\n"
_TRIES = (
    "    def _try(self, call, *arguments):\n"
    "        try:\n"
    "            return call(*arguments)\n"
    "        except Exception:\n"
    "            return None\n\n"
)
_LOCKS = (
    "    _lock = __import__('threading').Lock()\n\n"
    "    def _locked(self, call, *arguments):\n"
    "        with self._lock:\n"
    "            return call(*arguments)\n\n"
)
_ADDONS: Final = {
    "returns nothing": edit_controller(_LAMP, "return AddonState()", "return None"),
    "writes something else at each call": edit_controller(
        _LAMP,
        '"spec": json.dumps(',
        "'call': str(uuid.uuid4()),\n                    \"spec\": json.dumps(",
    ),
    "reports another message at each call": edit_controller(
        _LAMP, "return AddonState()", "return AddonState(message=str(uuid.uuid4()))"
    ),
    "never changes what is installed": edit_controller(
        _LAMP,
        _APPLIES,
        "        if workload.find(CONFIG_MAP, addon.name, NAMESPACE):\n"
        f"            return AddonState()\n{_APPLIES}",
    ),
    "forgets to remove what is installed": edit_controller(_LAMP, _DELETES, "False"),
    "remembers in memory where it is installed": edit_controller(
        _LAMP,
        _APPLIES,
        f"        self.__dict__.setdefault('_on', set()).add(cluster.name)\n{_APPLIES}",
        (_DELETES, f"cluster.name in self.__dict__.get('_on', ()) and {_DELETES}"),
    ),
    "does not wait until its objects are gone": edit_controller(
        _LAMP,
        'return Waiting("Removing", "the ConfigMap is being deleted", requeue_after=1)',
        "return Deleted()",
    ),
    "gives all add-ons one name": edit_controller(_LAMP, "addon.name", "'lamp'"),
    "gives what it installs another name after a restart": edit_controller(
        _LAMP,
        "addon.name",
        "f\"{addon.name}-{self.__dict__.setdefault('_id', uuid.uuid4())}\"",
    ),
    "hides the failures of installations": edit_controller(
        _LAMP,
        _APPLIES,
        "        self._try(\n            workload.apply,\n",
        (_NORMAL_LAMP, _TRIES + _NORMAL_LAMP),
    ),
    "hides the failures of removals": edit_controller(
        _LAMP,
        _DELETES,
        "self._try(workload.delete, CONFIG_MAP, addon.name, NAMESPACE)",
        (_NORMAL_LAMP, _TRIES + _NORMAL_LAMP),
    ),
    "forgets what it can remove only with a session": edit_controller(
        _LAMP,
        f"        if {_DELETES}:",
        "        try:\n"
        "            addon.session(Sessions)\n"
        "        except Exception:\n"
        "            return Deleted()\n"
        f"        if {_DELETES}:",
    ),
    "uses the session of the first add-on": edit_controller(
        _LAMP,
        "addon.session(Sessions),",
        "self.__dict__.get('_session')\n"
        "                    or self.__dict__.setdefault('_session', addon.session(Sessions)),",
    ),
    "serves one cluster at a time": edit_controller(
        _LAMP,
        _APPLIES,
        "        self._locked(\n            workload.apply,\n",
        (_NORMAL_LAMP, _LOCKS + _NORMAL_LAMP),
    ),
}
_LOGIN: Final = """\
class Login:
    ended = 0
    is_refused = False

    def __init__(self) -> None:
        self._ended = Login.ended

    def check(self) -> str:
        if Login.is_refused or self._ended != Login.ended:
            raise PermissionError("401 Unauthorized")
        return "me"


"""
_CHECKS: Final = """\
    def _check(self, addon):
        try:
            return addon.session(Sessions).check()
        except PermissionError as error:
            raise SessionExpiredError("401 Unauthorized") from error

"""
_DOUBLE: Final = """\
    def end_sessions(self) -> None:
        Login.ended += 1

    def simulate(self, faults) -> None:
        Login.is_refused = faults.refuse > 0

"""
_WITH_LOGIN: Final = (
    edit_controller(
        _LAMP,
        "class Sessions(SessionFactory[str])",
        f"{_LOGIN}class Sessions(SessionFactory[Login])",
        ("    SessionFactory,\n", "    SessionExpiredError,\n    SessionFactory,\n"),
        ('-> str:\n        """Log in', '-> Login:\n        """Log in'),
        ("return credentials.identity", "return Login()"),
        ("addon.session(Sessions),", "self._check(addon),"),
        (_NORMAL_LAMP, _CHECKS + _NORMAL_LAMP),
    ),
    Mistake(
        "tests/addons.py",
        "    def installed(",
        f"{_DOUBLE}    def installed(",
        (
            (
                "\n\nclass Addons:",
                "\nfrom cluster_api_provider_beacon.controllers.beacon_lamp import Login\n\n\n"
                "class Addons:",
            ),
        ),
    ),
)
_EXPIRED: Final = 'raise SessionExpiredError("401 Unauthorized") from error'
_LOGINS: Final = {
    "does not report that a session has ended": edit_controller(_LAMP, _EXPIRED, "raise"),
    "installs without an account": edit_controller(_LAMP, _EXPIRED, "return 'nobody'"),
}
KITS: Final[Mapping[str, Kit]] = {
    "addons": Kit(read_example("extension"), _ADDONS, wait_seconds=5),
    "logins": Kit(read_example("extension"), _LOGINS, authored=_WITH_LOGIN, wait_seconds=20),
}
