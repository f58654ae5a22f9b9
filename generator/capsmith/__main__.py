"""Run ``python -m capsmith``."""

from capsmith.cli import main

main(prog_name="capsmith")
