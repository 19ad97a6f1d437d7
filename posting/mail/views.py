"""The mail address of the current user, and what is sent to it."""

from typing import Any

from posting.accounts.current_user import (
    EDIT_LIMIT,
    SESSION_REQUIRED,
    SIGNED_IN,
    current_user,
    lock_current_user,
)
from posting.accounts.passwords import ACCOUNT_LIMIT, PasswordsBusy, verify_own_password
from posting.accounts.recovery import INVALID_LINK
from posting.mail import schemas, store
from posting.mail.models import LETTER, NOTIFICATIONS
from posting.web.endpoint import PUBLIC, Blueprint, Reply
from posting.web.errors import InvalidInput
from posting.web.etags import Condition
from posting.web.logs import audit

mails = Blueprint("mails", __name__, description="Mail addresses, and what members are sent")


@mails.get("/users/me/email", access=SESSION_REQUIRED, returns=schemas.Email())
def get_email() -> Reply:
    """Read your mail address. Other members do not see it."""
    return store.get_email(current_user.id)


@mails.put(
    "/users/me/email",
    access=SESSION_REQUIRED,
    limits=[ACCOUNT_LIMIT, store.CONFIRMATION_LIMIT, store.CONFIRMATION_SENDER_LIMIT],
    body=schemas.EmailInput(),
    conditional=True,
    prepare=verify_own_password,
    status=202,
    returns=schemas.Email(),
    errors=[store.NoMail, PasswordsBusy],
    description="A mail is on its way",
)
def set_email(body: dict[str, str], condition: Condition) -> Reply:
    """Send a link to a new address. It becomes yours when you confirm it within a day."""
    lock_current_user(exclusively=True)
    condition.require_body(store.get_email(current_user.id))
    store.ask_to_confirm(current_user.id, body["email"])
    audit("email-entered")
    return store.get_email(current_user.id)


@mails.delete("/users/me/email", access=SESSION_REQUIRED, conditional=True, status=204)
def delete_email(condition: Condition) -> Reply:
    """Forget your address. A mail to it says so, and is the last one."""
    lock_current_user(exclusively=True)
    condition.require_body(store.get_email(current_user.id))
    store.forget_address(current_user.id)
    audit("email-deleted")
    return None


@mails.post(
    "/email-confirmations",
    access=PUBLIC,
    body=schemas.ConfirmationInput(),
    returns=schemas.ConfirmedEmail(),
)
def confirm_email(body: dict[str, str]) -> Reply:
    """Confirm an address with the code of the link that was sent to it."""
    address = store.confirm_address(body["code"])
    if address is None:
        raise InvalidInput.at("/code", INVALID_LINK)
    return {"email": address}


@mails.get("/users/me/notifications", access=SIGNED_IN, returns=schemas.Settings())
def get_settings() -> Reply:
    """Read what you are sent. Without a confirmed address, you are sent nothing."""
    return store.get_settings(current_user.id)


@mails.patch(
    "/users/me/notifications",
    access=SIGNED_IN,
    limits=[EDIT_LIMIT],
    body=schemas.SettingsInput(),
    conditional=True,
    returns=schemas.Settings(),
)
def change_settings(body: dict[str, Any], condition: Condition) -> Reply:
    """Choose what you are sent."""
    lock_current_user(exclusively=True)
    condition.require_body(store.get_settings(current_user.id))
    store.change_settings(current_user.id, body)
    return store.get_settings(current_user.id)


@mails.post("/unsubscribe/notifications/<nanoid:id>", access=PUBLIC, status=204)
def end_notifications(id: str) -> Reply:
    """End the mails about notifications, with the ID in their `List-Unsubscribe` (RFC 8058).

    The body of the request is ignored. An unknown ID is accepted as well.
    """
    store.end_mails(NOTIFICATIONS, id)
    return None


@mails.post("/unsubscribe/letter/<nanoid:id>", access=PUBLIC, status=204)
def end_letter(id: str) -> Reply:
    """End the weekly letter, as `/unsubscribe/notifications/{id}` ends other mails."""
    store.end_mails(LETTER, id)
    return None
