"""A management cluster on this computer for developing a provider.

Its servers are child processes of a background process, the supervisor.  However the supervisor
ends, no server keeps running.  Prints nothing to the console.
"""
