"""Webhooks: requests that tell other programs what happens, as Standard Webhooks describes them."""
