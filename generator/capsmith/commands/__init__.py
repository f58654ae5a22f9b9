"""One module for each command and for each stage: pure steps, with input and output at both ends.

A command imports the stages that it needs, but no other command, except for commands based on
``update``.  Nothing is imported here, so that a command with few dependencies starts quickly.
"""
