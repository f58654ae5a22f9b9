"""The folder that the processes of one run of the tests share."""

from typing import Final

RUN_FOLDER: Final = "CAPSMITH_TEST_RUN"
"""The variable with its path."""
