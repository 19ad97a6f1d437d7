"""Reactions of members to posts and comments."""
