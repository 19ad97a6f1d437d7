"""Avatars: the faces of members."""
