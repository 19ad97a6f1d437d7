"""Sign-up, sign-in, sign-out, and the sessions of the current user."""

from contextlib import suppress
from datetime import datetime
from typing import Any

from flask import current_app
from werkzeug.exceptions import Forbidden

from posting.accounts import schemas, sessions
from posting.accounts.current_user import (
    SESSION_OPTIONAL,
    SESSION_REQUIRED,
    current_user,
    lock_current_user,
)
from posting.accounts.models import ACTIVE, PENDING
from posting.accounts.passwords import (
    ACCOUNT_LIMIT,
    ADDRESS_LIMIT,
    PasswordsBusy,
    VerifiedAccount,
    accept_guess,
    core_to_hash,
    current_hash,
    guess,
    hash_password,
    lock_verified_account,
    place_to_hash,
    verify_own_password,
    verify_password,
)
from posting.accounts.sessions import NoSuchSession
from posting.accounts.store import UsernameTaken, create_account, find_account, store_password_hash
from posting.db.types import now, to_rfc3339
from posting.invitations.store import record_use, take_use
from posting.mail import store as mails
from posting.notifications.telling import tell_of_application
from posting.site import settings as site_settings
from posting.web.endpoint import Access, Blueprint, Reply
from posting.web.errors import REQUIRED, Coded, InvalidInput, NotSignedIn
from posting.web.etags import Condition
from posting.web.hosts import client_ip, external_url
from posting.web.limits import Counts, Hits, Limit, LimitReached
from posting.web.logs import audit
from posting.web.schemas import pick
from posting.webhooks.models import APPLICATION_CREATED
from posting.webhooks.store import announce

# Attempts, because hashing is what costs.
SIGNUP_LIMIT = Limit("signup", "LIMIT_SIGNUP", counts=Counts.ATTEMPTS, refunded=(PasswordsBusy,))

auth = Blueprint("auth", __name__, description="Sign-up, sign-in and sessions")


class SignUpClosed(Coded, Forbidden):
    error_code = "signup_closed"
    description = "Sign-up is closed."


class WrongCredentials(NotSignedIn):
    error_code = "wrong_credentials"
    description = "The username or the password is wrong."


class PendingApproval(Coded, Forbidden):
    error_code = "pending_approval"
    description = "This account waits for the approval of a moderator."


class AccountSuspended(Coded, Forbidden):
    error_code = "suspended"
    description = "This account is suspended."

    def __init__(self, until: datetime | None = None, reason: str | None = None) -> None:
        self.members = {"reason": reason, "until": to_rfc3339(until) if until else None}
        end = f" until {self.members['until']}" if until else ""
        super().__init__(f"This account is suspended{end}." + (f" {reason}" if reason else ""))


def refuse_closed_signup() -> None:
    if current_app.config["SIGNUP"] == "closed":
        raise SignUpClosed


SIGNUP_OPEN = Access(refuse_closed_signup, security=[], errors=[SignUpClosed])


def hash_new_password(body: dict[str, Any]) -> str:
    """Return the hash of the password of a new account."""
    with place_to_hash(client_ip()), core_to_hash():
        return hash_password(body.pop("password"))


@auth.post(
    "/signup",
    access=SIGNUP_OPEN,
    limits=[SIGNUP_LIMIT],
    body=schemas.SignUp(),
    prepare=hash_new_password,
    status=201,
    returns=schemas.NewUser(),
    headers=["Location"],
    errors=[UsernameTaken, mails.NoMail, PasswordsBusy],
)
def sign_up(body: dict[str, Any], prepared: str) -> Reply:
    """Create an account, which may have to wait for approval. This does not sign in."""
    site_settings.refresh()  # an owner may have changed the rule while the password was hashed
    refuse_closed_signup()
    if missing := schemas.missing_for_signup(body):
        raise InvalidInput.at(f"/{missing}", REQUIRED)
    body |= {"password_hash": prepared, "created_at": now()}
    code, application = body.pop("invitation", None), body.pop("application", None)
    email = body.pop("email", None)
    use = take_use(code) if code is not None else None
    is_pending = use is None and current_app.config["SIGNUP"] == "approval"
    if use:
        body["role"] = use.role
    elif is_pending:
        body |= {"application": application, "pending_since": body["created_at"]}
    user = create_account(**body)
    if use:
        record_use(use, user["id"])
    if is_pending:
        tell_of_application(user["id"])
        announce(APPLICATION_CREATED, user["id"])
    if email:
        with suppress(LimitReached):  # then the account has no address
            of_account = (mails.CONFIRMATION_LIMIT, user["id"])
            Hits().count(of_account, (mails.CONFIRMATION_SENDER_LIMIT, client_ip()))
            mails.ask_to_confirm(user["id"], email)
    audit("sign-up", user=user["id"])
    if is_pending:
        user["state"] = PENDING
    return user, {"Location": external_url("users.get_user", id=user["id"])}


def verify_credentials(body: dict[str, str], hits: Hits) -> VerifiedAccount:
    """Check the password, and hash it again if the settings have changed."""
    user = find_account(body["username"])
    with guess(user.id if user else body["username"].lower(), hits):
        verified = verify_password(user, body["password"])
        if verified is None:
            audit("sign-in-failed", user=user.id if user else None)
            raise WrongCredentials
        accept_guess(verified.id, hits)
        return VerifiedAccount(verified, current_hash(verified, body["password"]))


@auth.post(
    "/signin",
    access=SESSION_OPTIONAL,
    limits=[ADDRESS_LIMIT],
    body=schemas.Credentials(),
    prepare=verify_credentials,
    returns=schemas.User(),
    headers=["Set-Cookie"],
    errors=[WrongCredentials, PendingApproval, AccountSuspended, PasswordsBusy],
)
def sign_in(body: dict[str, str], prepared: VerifiedAccount) -> Reply:
    """Sign in. Starts a session; a session sent with the request is ended."""
    user = lock_verified_account(prepared.user)
    if user.state == PENDING:
        raise PendingApproval
    if user.state != ACTIVE:
        raise AccountSuspended(user.suspended_until, user.suspension_reason)
    if prepared.password_hash != user.password_hash:
        store_password_hash(user.id, prepared.password_hash)
    token = sessions.open_session(user.id)
    audit("sign-in", user=user.id)
    return pick(schemas.User, user), sessions.cookie_header(token)


@auth.post("/signout", access=SESSION_OPTIONAL, status=204, headers=["Set-Cookie"])
def sign_out() -> Reply:
    """Sign out. Ends the session sent with the request, if there is one."""
    if user_id := sessions.end_current_session():
        audit("sign-out", user=user_id)
    return None, sessions.cookie_header(None)


@auth.get("/sessions", access=SESSION_REQUIRED, returns=schemas.Session(many=True))
def list_sessions() -> Reply:
    """List your sessions, newest first, fifty at most."""
    return sessions.list_sessions(current_user.id, current_id=current_user.session_id)


@auth.post(
    "/session-confirmations",
    access=SESSION_REQUIRED,
    limits=[ACCOUNT_LIMIT],
    body=schemas.SessionConfirmation(),
    prepare=verify_own_password,
    status=204,
    errors=[PasswordsBusy],
)
def confirm_session(body: dict[str, str]) -> Reply:
    """Give your password again, so that you can download a backup within five minutes."""
    lock_current_user()
    sessions.confirm_session(current_user.session_id)
    audit("session-confirmed")
    return None


@auth.get(
    "/sessions/<nanoid:id>",
    access=SESSION_REQUIRED,
    returns=schemas.Session(),
    errors=[NoSuchSession],
)
def get_session(id: str) -> Reply:
    """Read one of your sessions."""
    return sessions.get_session(current_user.id, id, current_id=current_user.session_id)


@auth.delete(
    "/sessions/<nanoid:id>",
    access=SESSION_REQUIRED,
    conditional=True,
    status=204,
    headers=["Set-Cookie"],
    errors=[NoSuchSession],
)
def delete_session(id: str, condition: Condition) -> Reply:
    """End one of your sessions."""
    current_id = current_user.session_id
    condition.require_body(sessions.get_session(current_user.id, id, current_id=current_id))
    if not sessions.end_session(current_user.id, id):
        raise NoSuchSession
    audit("sign-out")
    return None, sessions.cookie_header(None) if id == current_id else {}
