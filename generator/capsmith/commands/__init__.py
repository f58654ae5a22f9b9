"""One module for each command and each stage: pure steps, with input and output at the two ends.

A command imports the stages that it needs and no other command, except those built on ``update``.
Nothing is imported here, so that a command with few needs starts quickly.
"""
