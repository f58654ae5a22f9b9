"""The reference of the contract: pages from the contract data, as Markdown or HTML.

Reads no files and writes none; knows no provider.
"""
