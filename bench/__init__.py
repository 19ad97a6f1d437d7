"""Benchmarks of Posting against upper bounds and PocketBase."""
