"""Load and faults: what 5,000 machines and hostile days do to a generated provider."""
