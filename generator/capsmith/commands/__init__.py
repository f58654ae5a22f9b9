"""One module a command and a stage: pure steps composed, I/O at both ends.

A command imports the stages that it needs and no other command, but for what is built on
``update``.  Nothing is imported here: a command that needs little stays quick.
"""
