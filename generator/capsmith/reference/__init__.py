"""Generate the contract reference from the contract data, as Markdown or HTML.

Opens no files, and does not depend on any provider.
"""
