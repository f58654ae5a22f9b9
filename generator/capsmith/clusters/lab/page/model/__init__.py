"""The data that the page shows, derived from objects and log lines.

Opens no file, sends no request, and does not depend on the server.
"""
