"""The page of a lab, on which provider authors see a management cluster live in a browser.

``model`` is pure: it converts objects to the data that the page shows.  The other modules watch the
cluster, follow logs and serve the page, on the loopback interface only.
"""
