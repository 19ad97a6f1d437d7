"""Looking after a community: reports, the acts of moderators, and what they see."""
