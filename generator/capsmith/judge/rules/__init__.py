"""The static checks of the contract's rules."""
