"""The fake management cluster of the scenarios of machine pools."""
