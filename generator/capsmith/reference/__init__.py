"""Generate the reference of the contract from the contract data, as Markdown or HTML.

Neither reads nor writes files, and is independent of any provider.
"""
