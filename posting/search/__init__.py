"""The kit of search: the words of texts, their indexes on both databases, and lists of results."""
