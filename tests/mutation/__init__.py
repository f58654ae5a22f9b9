"""Break each static rule in valid releases, and see that verify finds it by that rule."""
