"""Tables, queries, locks and transactions."""
