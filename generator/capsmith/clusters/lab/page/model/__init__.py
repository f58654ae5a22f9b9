"""What the page shows, derived from objects and log lines.

Opens no file, sends no request and knows no server.
"""
