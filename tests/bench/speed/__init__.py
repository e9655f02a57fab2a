"""The speed goals, one module for each group of them."""
