"""An infrastructure provider's machine pools."""
