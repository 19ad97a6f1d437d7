"""What owners do."""

from posting.testbed import PASSWORD


def confirm(client, password=PASSWORD):
    """Give the password again, as the download of a backup requires."""
    return client.post("/session-confirmations", json={"current_password": password})
