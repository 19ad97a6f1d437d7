"""How fast Posting is, next to what bounds it and to what people would run instead."""
