"""One module per command and per stage: pure steps, with input and output at both ends.

A command imports the stages that it needs, but no other command, except for commands based on
``update``.  This module imports nothing, so that a command with few dependencies starts quickly.
"""
