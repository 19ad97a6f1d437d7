"""A new password without the old one, and the recovery codes of the current user."""

from posting.accounts import schemas
from posting.accounts.current_user import SESSION_REQUIRED, current_user, lock_current_user
from posting.accounts.fields import is_own_name
from posting.accounts.passwords import (
    ACCOUNT_LIMIT,
    ADDRESS_LIMIT,
    PasswordsBusy,
    VerifiedAccount,
    accept_guess,
    guess,
    hash_password,
    verify_own_password,
)
from posting.accounts.recovery import (
    INVALID_LINK,
    count_recovery_codes,
    find_account_id,
    is_link,
    is_recovery_code,
    replace_recovery_codes,
    split_code,
    use_link,
    use_recovery_code,
)
from posting.accounts.store import (
    find_account_by_id,
    lock_account,
    sign_out_everywhere,
    store_password_hash,
)
from posting.mail import store as mails
from posting.mail.models import PASSWORD_CHANGED
from posting.mail.schemas import LinkRequest
from posting.web.endpoint import PUBLIC, Blueprint, Reply
from posting.web.errors import InvalidInput, Message
from posting.web.etags import etag_header
from posting.web.hosts import external_url
from posting.web.limits import Hits
from posting.web.logs import audit
from posting.web.schemas import pick

INVALID_CODE = Message(
    "invalid_code", "The username or the code is wrong, or the code has been used."
)

recovery = Blueprint("recovery", __name__, description="New passwords for those who forgot theirs")


def verify_reset(body: dict[str, str], hits: Hits) -> VerifiedAccount:
    """Check the link or the recovery code, and hash the new password."""
    by_link = "code" in body
    id = split_code(body["code"])[0] if by_link else find_account_id(body["username"])
    with guess(body["username"].lower() if id is None else id, hits):
        is_right = is_link(body["code"]) if by_link else is_recovery_code(id, body["recovery_code"])
        account = find_account_by_id(id) if id and is_right else None
        if account is None:
            audit("password-reset-failed")
            raise _invalid_reset(by_link=by_link)
        accept_guess(account.id, hits)
        if is_own_name(body["password"], account.username):
            raise InvalidInput.at("/password", schemas.SAME_AS_USERNAME)
        return VerifiedAccount(account, hash_password(body["password"]))


@recovery.post(
    "/password-resets",
    access=PUBLIC,
    limits=[ADDRESS_LIMIT],
    body=schemas.PasswordReset(),
    prepare=verify_reset,
    returns=schemas.User(),
    errors=[PasswordsBusy],
)
def reset_password(body: dict[str, str], prepared: VerifiedAccount) -> Reply:
    """Set a new password with a link or a recovery code. Ends all sessions and tokens.

    The response is the user, since a link does not contain the username to sign in with.
    """
    account, by_link = prepared.user, "code" in body
    lock_account(account.id)
    is_used = (
        use_link(account.id, body["code"])
        if by_link
        else use_recovery_code(account.id, body["recovery_code"])
    )
    if not is_used:  # another request was faster
        raise _invalid_reset(by_link=by_link)
    store_password_hash(account.id, prepared.password_hash)
    sign_out_everywhere(account.id, keep_recovery_codes=not by_link)
    mails.queue_mail(PASSWORD_CHANGED, account.id)
    audit("password-reset", user=account.id)
    return pick(schemas.User, account)


@recovery.post(
    "/password-resets/requests",
    access=PUBLIC,
    limits=[mails.PASSWORD_SENDER_LIMIT],
    body=LinkRequest(),
    status=202,
    errors=[mails.NoMail],
    description="A mail is on its way, if the account has a confirmed address",
)
def request_link(body: dict[str, str]) -> Reply:
    """Send a link to set a password. The response does not say whether there is such an account."""
    mails.queue_password_link(body["name"].strip())
    audit("password-link-requested")
    return None


def _invalid_reset(*, by_link: bool) -> InvalidInput:
    """Return the error of a link or of a recovery code."""
    if by_link:
        return InvalidInput.at("/code", INVALID_LINK)
    return InvalidInput.at("/recovery_code", INVALID_CODE)


@recovery.get("/recovery-codes", access=SESSION_REQUIRED, returns=schemas.RecoveryCodes())
def get_recovery_codes() -> Reply:
    """Read how many recovery codes you have left."""
    return count_recovery_codes(current_user.id)


@recovery.post(
    "/recovery-codes",
    access=SESSION_REQUIRED,
    limits=[ACCOUNT_LIMIT],
    body=schemas.RecoveryCodesInput(),
    prepare=verify_own_password,
    status=201,
    returns=schemas.NewRecoveryCodes(),
    headers=["Location"],
    errors=[PasswordsBusy],
)
def create_recovery_codes(body: dict[str, str]) -> Reply:
    """Create ten recovery codes, which replace the former ones. Only this response has them."""
    lock_current_user(exclusively=True)
    codes = replace_recovery_codes(current_user.id)
    left = count_recovery_codes(current_user.id)
    audit("recovery-codes-created")
    headers = etag_header(left) | {"Location": external_url("recovery.get_recovery_codes")}
    return left | {"codes": codes}, headers
