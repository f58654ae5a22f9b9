"""Before cookiecutter writes: refuse to replace an existing provider.yaml."""

import sys
from pathlib import Path

if Path("provider.yaml").exists():
    sys.exit(
        "There is a provider.yaml in this folder already, and it is yours: edit it and run "
        "capsmith generate."
    )
