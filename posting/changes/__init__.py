"""The log of changes to posts, comments, images and accounts, for apps that keep a copy of them."""
