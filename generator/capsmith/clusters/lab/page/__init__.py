"""The lab's page, which shows provider authors a management cluster live in a browser.

``model`` is pure: it converts objects to the data that the page shows.  The other modules watch the
cluster, follow logs and serve the page, but only on the loopback interface.
"""
