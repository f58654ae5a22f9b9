"""A management cluster on this computer for a provider under development.

Its servers are child processes of a background process, the supervisor.  However the supervisor
ends, no server keeps running.  Prints nothing to the console.
"""
