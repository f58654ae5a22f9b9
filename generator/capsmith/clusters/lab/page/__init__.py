"""The page of a lab: what a management cluster contains, live in a browser, for provider authors.

``model`` is pure: it turns objects into what the page shows.  The other modules watch the cluster,
follow logs and serve the page, on the loopback interface only.
"""
