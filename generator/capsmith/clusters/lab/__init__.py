"""A management cluster on this computer for a provider under development.

Its servers are children of one background process, the supervisor: however that ends, nothing is
left running.  Knows no console.
"""
