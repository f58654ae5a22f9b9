"""What makes a release of capsmith: both distributions, built, checked and described.

Nothing here uploads: `.github/workflows/release.yaml` runs this and publishes what it has written.
"""
