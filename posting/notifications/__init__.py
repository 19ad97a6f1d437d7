"""Notifications of members about what others write, and the posts that members follow or mute."""
