"""Before cookiecutter writes: keep a provider.yaml that is there, it is the author's."""

import sys
from pathlib import Path

if Path("provider.yaml").exists():
    sys.exit(
        "There is a provider.yaml in this folder already, and it is yours: edit it and run "
        "capsmith generate."
    )
