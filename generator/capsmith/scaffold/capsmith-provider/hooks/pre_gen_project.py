"""Stop cookiecutter if it would replace an existing provider.yaml."""

import sys
from pathlib import Path

if Path("provider.yaml").exists():
    sys.exit("This folder already has a provider.yaml: edit it and run capsmith update.")
