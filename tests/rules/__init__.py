"""Each rule with a check: what keeps it, what breaks it, and what is said about that."""
