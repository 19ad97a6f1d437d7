"""Topics: what posts are about, as owners name it."""
