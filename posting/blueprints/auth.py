"""Signing up, in and out, and the sessions that one has open."""

from typing import Any

import sqlalchemy as sa
from flask import current_app
from werkzeug.exceptions import Forbidden, NotFound

from posting.auth import sessions
from posting.auth.sessions import (
    ADDRESS_LIMIT,
    UsernameTaken,
    current_user,
    ends_session,
    signed_in,
    user_id,
)
from posting.db.engine import begin, db, select
from posting.db.models import Session, User
from posting.http import audit
from posting.http.endpoint import Blueprint, public
from posting.http.errors import NotSignedIn
from posting.http.proxy import client_ip
from posting.http.rate_limits import Limit, charge, limited
from posting.http.urls import external_url
from posting.schemas import accounts as accounts_schemas

SIGNUP_LIMIT = Limit("signup", "LIMIT_SIGNUP")

auth = Blueprint("auth", __name__, description="Accounts begin here, sessions begin and end here")


class SignUpClosed(Forbidden):
    description = "Sign-up is closed here."


class WrongCredentials(NotSignedIn):
    description = "The username or the password is wrong."


class AccountSuspended(Forbidden):
    description = "This account is suspended."


class NoSuchSession(NotFound):
    description = "There is no such session."


@auth.post("/signup")
@public
@limited(SIGNUP_LIMIT, client_ip)
@auth.arguments(accounts_schemas.SignUp)
@auth.answers(SignUpClosed, UsernameTaken)
@auth.response(201, accounts_schemas.User)
def sign_up(fields: dict[str, Any]) -> Any:
    """Open an account. This opens no session: sign in next."""
    if current_app.config["SIGNUP"] == "closed":
        raise SignUpClosed
    charge((SIGNUP_LIMIT, client_ip()))
    db.session.commit()  # hashing takes long: no transaction meanwhile
    user = User(password_hash=sessions.hash_password(fields.pop("password")), **fields)
    db.session.add(user)
    with sessions.unique_username():
        db.session.commit()
    audit.log("sign-up", user=user.id)
    return user, {"Location": external_url("users.get_user", id=user.id)}


@auth.post("/signin")
@ends_session
@limited(ADDRESS_LIMIT, client_ip)
@auth.arguments(accounts_schemas.Credentials)
@auth.answers(WrongCredentials, AccountSuspended)
@auth.response(200, accounts_schemas.User, headers={"Set-Cookie": "Set-Cookie"})
def sign_in(credentials: dict[str, str]) -> Any:
    """Open a session; one that is presented ends."""
    begin(writes=False)
    username, password = credentials["username"], credentials["password"]
    user = db.session.scalar(User.named(username))
    db.session.commit()
    if not sessions.try_password(user, username, password) or user is None:  # None never matches
        audit.log("sign-in-failed", user=user.id if user else None)
        raise WrongCredentials
    renewed = sessions.renewed_hash(user, password)
    sessions.lock_account(user).password_hash = renewed
    if user.suspended_at:
        raise AccountSuspended
    token = sessions.open_session(user)
    db.session.commit()
    audit.log("sign-in", user=user.id)
    return user, sessions.cookie(token)


@auth.post("/signout")
@ends_session
@auth.response(204, headers={"Set-Cookie": "Set-Cookie"})
def sign_out() -> Any:
    """End the session that is presented, if any."""
    whose = sessions.end_presented_session()
    db.session.commit()
    if whose:
        audit.log("sign-out", user=whose)
    return None, sessions.cookie(None)


@auth.get("/sessions")
@signed_in
@auth.response(200, accounts_schemas.Session(many=True))
def list_sessions() -> Any:
    """List one's own sessions, the newest first: fifty at most."""
    rows = select(Session.of_user(), user=user_id())
    current = current_user().session_id
    return [{**row._mapping, "current": row.id == current} for row in rows]


@auth.delete("/sessions/<nanoid:id>")
@signed_in
@auth.answers(NoSuchSession)
@auth.response(204)
def delete_session(id: str) -> Any:
    """End a session of one's own."""
    own = sa.delete(Session).where(Session.id == id, Session.user_id == user_id())
    if not db.session.execute(own.returning(Session.id)).all():
        raise NoSuchSession
    db.session.commit()
    audit.log("sign-out")
    return (None, sessions.cookie(None)) if id == current_user().session_id else None
