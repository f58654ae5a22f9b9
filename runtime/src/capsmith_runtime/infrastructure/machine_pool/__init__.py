"""Machine pools of an infrastructure provider."""
