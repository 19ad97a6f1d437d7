"""Rules that concern more than one table: accounts, threads of comments, moderation, images."""
