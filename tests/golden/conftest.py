"""Generated repositories bring tests of their own; they are run by tests/functional."""

collect_ignore_glob = ["*/expected/*"]
