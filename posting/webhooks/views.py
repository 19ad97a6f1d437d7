"""Webhooks: list, create, read, delete, and list what was sent to them."""

from collections.abc import Mapping
from typing import Any

from flask import current_app
from werkzeug.exceptions import Conflict, HTTPException

from posting.accounts.current_user import OWNER_SESSION_REQUIRED, current_user, lock_current_user
from posting.accounts.passwords import ACCOUNT_LIMIT, PasswordsBusy, verify_own_password
from posting.moderation import log
from posting.web.endpoint import Blueprint, Reply
from posting.web.errors import Coded
from posting.web.etags import Condition, etag_header
from posting.web.hosts import external_url
from posting.web.schemas import PageQuery
from posting.webhooks import schemas, store
from posting.webhooks.store import NoSuchWebhook, TooManyWebhooks


class NoWebhooks(Coded, Conflict):
    error_code = "no_webhooks"
    description = "This service has turned webhooks off."


def no_webhooks(config: Mapping[str, Any]) -> HTTPException | None:
    """Return the error of new webhooks with these settings, if there is one."""
    return NoWebhooks() if config["WEBHOOKS"] == "off" else None


webhooks = Blueprint("webhooks", __name__, description="URLs to which events are sent")


@webhooks.get(
    "/webhooks",
    access=OWNER_SESSION_REQUIRED,
    query=PageQuery(),
    returns=schemas.Webhook(many=True),
    headers=["Link"],
)
def list_webhooks(query: dict[str, Any]) -> Reply:
    """List the webhooks of all owners, newest first."""
    page = store.list_webhooks(limit=query["limit"], cursor=query.get("cursor"))
    return page.items, page.headers


@webhooks.post(
    "/webhooks",
    access=OWNER_SESSION_REQUIRED,
    limits=[ACCOUNT_LIMIT],
    body=schemas.WebhookInput(),
    prepare=verify_own_password,
    status=201,
    returns=schemas.NewWebhook(),
    headers=["Location"],
    errors=[no_webhooks, TooManyWebhooks, PasswordsBusy],
)
def create_webhook(body: dict[str, Any]) -> Reply:
    """Create a webhook. Only this response contains its secret.

    The first event that it gets is `webhook.created`, by which you can try it.
    """
    if error := no_webhooks(current_app.config):
        raise error
    lock_current_user(exclusively=True)
    webhook = store.create_webhook(current_user.id, body["url"], body["events"])
    log.record_act("created", "webhook", webhook["id"], None)
    headers = etag_header({name: webhook[name] for name in webhook if name != "secret"})
    return webhook, headers | {"Location": external_url("webhooks.get_webhook", id=webhook["id"])}


@webhooks.get(
    "/webhooks/<nanoid:id>",
    access=OWNER_SESSION_REQUIRED,
    returns=schemas.Webhook(),
    errors=[NoSuchWebhook],
)
def get_webhook(id: str) -> Reply:
    """Read a webhook, without its secret."""
    return store.get_webhook(id)


@webhooks.delete(
    "/webhooks/<nanoid:id>",
    access=OWNER_SESSION_REQUIRED,
    conditional=True,
    status=204,
    errors=[NoSuchWebhook],
)
def delete_webhook(id: str, condition: Condition) -> Reply:
    """Delete a webhook. What waits for it is not sent any more."""
    condition.require_body(store.get_webhook(id))
    store.delete_webhook(id)
    log.record_act("deleted", "webhook", id, None)
    return None


@webhooks.get(
    "/webhooks/<nanoid:id>/deliveries",
    access=OWNER_SESSION_REQUIRED,
    query=PageQuery(),
    returns=schemas.Delivery(many=True),
    headers=["Link"],
    errors=[NoSuchWebhook],
)
def list_deliveries(id: str, query: dict[str, Any]) -> Reply:
    """List what was sent to a webhook within 30 days, and what is to be sent, newest first."""
    store.get_webhook(id)
    page = store.list_deliveries(id, limit=query["limit"], cursor=query.get("cursor"))
    return page.items, page.headers
