"""The views of moderation."""
