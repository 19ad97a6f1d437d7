"""The log of changes to posts, comments and images, for apps that keep a copy of them."""
