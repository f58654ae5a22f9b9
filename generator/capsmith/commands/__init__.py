"""One module per command and per stage: pure steps, with I/O at both ends.

A command imports the stages that it needs and no other command, except those built on ``update``.
Nothing is imported here: a command that needs little stays quick.
"""
