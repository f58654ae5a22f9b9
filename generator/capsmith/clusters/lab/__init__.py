"""A management cluster on this computer, in which a provider under development runs.

Its servers are the children of one process in the background, the supervisor: whatever happens to
that, nothing is left running.  Knows no console.
"""
