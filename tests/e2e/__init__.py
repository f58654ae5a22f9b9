"""End-to-end tests: a generated provider driven by the real Cluster API core.

Nothing here replaces a component that a provider meets in production, except
the bootstrap and control plane providers and the machines themselves, for which
there are helpers in `fakes`.
"""
