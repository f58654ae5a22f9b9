"""Static checks for contract rules."""
