"""Session cookies that somebody has copied: none is good once its session has ended."""

import pytest

from posting.db.models import SESSIONS_PER_USER
from tests.conftest import PASSWORD
from tests.helpers.assertions import problem

USERS = 5  # for each way to end sessions: 5 * 50 cookies


def sign_out(captured, **_):
    for client in captured:
        assert client.post("/signout").status_code == 204


def change_password(sign_in, name, **_):
    client = sign_in(name)
    change = {"password": "another walk by the sea", "current_password": PASSWORD}
    assert client.patch(f"/users/{client.user['id']}", json=change).status_code == 200


def suspend(flask, name, **_):
    assert flask("users", "suspend", name)[0] == 0


def delete_account(sign_in, name, **_):
    client = sign_in(name)
    assert client.delete(f"/users/{client.user['id']}").status_code == 204


@pytest.mark.parametrize("end", [sign_out, change_password, suspend, delete_account])
def test_no_copied_cookie_is_accepted(app, flask, sign_in, end):
    for number in range(USERS):
        name = f"user-{number}"
        captured = [sign_in(name) for _ in range(SESSIONS_PER_USER)]
        tokens = {client.get_cookie("session").value for client in captured}
        assert len(tokens) == SESSIONS_PER_USER
        assert captured[-1].get("/users/me").status_code == 200
        end(sign_in=sign_in, flask=flask, name=name, captured=captured)
        for token in tokens:
            thief = app.test_client()
            thief.set_cookie("session", token)
            problem(thief.get("/users/me"), 401)
            problem(thief.post("/posts", json={"title": "a", "content": "b"}), 401)
