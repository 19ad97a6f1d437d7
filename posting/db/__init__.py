"""Connections, transactions and migrations. They know no feature and no request."""
