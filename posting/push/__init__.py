"""Web push: notifications on the devices of members, also while no page is open."""
