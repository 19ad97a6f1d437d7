"""Comments on posts, and replies to them."""
