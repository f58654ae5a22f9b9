"""A fake management cluster for scenarios with machine pools."""
