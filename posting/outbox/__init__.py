"""What the service sends by itself, such as mails, until it is delivered."""
