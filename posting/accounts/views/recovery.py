"""A new password without the old one, and the recovery codes of the current user."""

from posting.accounts import schemas, tokens
from posting.accounts.codes import split_code
from posting.accounts.current_user import (
    SESSION_REQUIRED,
    current_user,
    get_own_account,
    lock_current_user,
)
from posting.accounts.fields import is_own_name
from posting.accounts.passwords import (
    ACCOUNT_LIMIT,
    ADDRESS_LIMIT,
    WRONG_PASSWORD,
    PasswordsBusy,
    accept_guess,
    guess,
    hash_password,
    store_password_hash,
    verify_password,
)
from posting.accounts.queries import lock_account
from posting.accounts.recovery import (
    count_recovery_codes,
    find_account_id,
    replace_recovery_codes,
    use_link,
    use_recovery_code,
    verify_link,
    verify_recovery_code,
)
from posting.db.transactions import commit
from posting.web import audit
from posting.web.endpoint import PUBLIC, Blueprint, Reply
from posting.web.errors import InvalidInput
from posting.web.etags import etag_header
from posting.web.limits import Hits
from posting.web.messages import Message
from posting.web.rows import pick
from posting.web.urls import external_url

INVALID_LINK = Message("invalid_code", "This link has expired or has been used. Ask for another.")
INVALID_CODE = Message(
    "invalid_code", "The username or the code is wrong, or the code has been used."
)

recovery = Blueprint("recovery", __name__, description="New passwords for those who forgot theirs")


@recovery.post(
    "/password-resets",
    access=PUBLIC,
    limit=ADDRESS_LIMIT,
    body=schemas.PasswordReset(),
    returns=schemas.User(),
    errors=[PasswordsBusy],
)
def reset_password(body: dict[str, str], hits: Hits) -> Reply:
    """Set a new password with a link or a recovery code. Ends all sessions and tokens.

    The response is the user, since a link does not contain the username to sign in with.
    """
    by_link = "code" in body
    if by_link:
        id: str | None = split_code(body["code"])[0]
        invalid = InvalidInput.at("/code", INVALID_LINK)
    else:
        id = find_account_id(body["username"])
        invalid = InvalidInput.at("/recovery_code", INVALID_CODE)
    with guess(body["username"].lower() if id is None else id, hits):
        account = (
            verify_link(body["code"])
            if by_link
            else verify_recovery_code(id, body["recovery_code"])
        )
        if account is None:
            audit.log("password-reset-failed")
            raise invalid
        accept_guess(account.id, hits)
        commit()
        if is_own_name(body["password"], account.username):
            raise InvalidInput.at("/password", schemas.SAME_AS_USERNAME)
        password_hash = hash_password(body["password"])
    lock_account(account.id)
    is_used = (
        use_link(account.id, body["code"])
        if by_link
        else use_recovery_code(account.id, body["recovery_code"])
    )
    if not is_used:
        raise invalid  # another request was faster
    store_password_hash(account.id, password_hash)
    tokens.revoke_access(account.id, keep_recovery_codes=not by_link)
    commit()
    audit.log("password-reset", user=account.id)
    return pick(schemas.User, account)


@recovery.get("/recovery-codes", access=SESSION_REQUIRED, returns=schemas.RecoveryCodes())
def get_recovery_codes() -> Reply:
    """Read how many recovery codes you have left."""
    return count_recovery_codes(current_user.id)


@recovery.post(
    "/recovery-codes",
    access=SESSION_REQUIRED,
    limit=ACCOUNT_LIMIT,
    body=schemas.RecoveryCodesInput(),
    status=201,
    returns=schemas.NewRecoveryCodes(),
    headers=["Location"],
    errors=[PasswordsBusy],
)
def create_recovery_codes(body: dict[str, str], hits: Hits) -> Reply:
    """Create ten recovery codes, which replace the former ones. Only this response has them."""
    user = get_own_account()
    with guess(user.id, hits, by_owner=True):
        if not verify_password(user, body["current_password"]):
            audit.log("password-refused")
            raise InvalidInput.at("/current_password", WRONG_PASSWORD)
    accept_guess(user.id, hits)
    commit()  # sign-in locks the windows of limits after the account
    lock_current_user(exclusively=True)
    codes = replace_recovery_codes(user.id)
    left = count_recovery_codes(user.id)
    commit()
    audit.log("recovery-codes-created")
    headers = etag_header(left) | {"Location": external_url("recovery.get_recovery_codes")}
    return left | {"codes": codes}, headers
