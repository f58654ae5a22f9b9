"""A management cluster on this computer for developing a provider.

Its servers are child processes of a background process, the supervisor. No server outlives the
supervisor, no matter how it exits. This package prints nothing to the console.
"""
