"""From one contract to the next: what to write in provider.yaml, and what that means."""
