"""What starts, supervises and talks to the real components. Knows no test."""
