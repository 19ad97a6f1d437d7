"""Files of posts and comments. They are downloads: no page shows what is in them."""
