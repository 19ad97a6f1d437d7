"""Posts, and the search for them."""
