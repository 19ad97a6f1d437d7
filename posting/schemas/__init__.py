"""What requests contain and responses return, as marshmallow schemas."""
