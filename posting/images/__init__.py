"""Images of posts."""
