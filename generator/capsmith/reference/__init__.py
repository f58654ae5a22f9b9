"""Generate the contract reference from the contract data, as Markdown or HTML.

Neither reads nor writes files, and is independent of any provider.
"""
