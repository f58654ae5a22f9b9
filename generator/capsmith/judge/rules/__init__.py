"""Static checks of contract rules."""
