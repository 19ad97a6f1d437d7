"""The outbox: a queue of mails and the like, which the service sends by itself."""
