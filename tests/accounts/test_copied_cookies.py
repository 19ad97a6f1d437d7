"""A copied session cookie is refused once its session has ended."""

import pytest

from posting.accounts.models import SESSIONS_PER_USER
from tests.conftest import PASSWORD
from tests.helpers.assertions import assert_problem


def sign_out(clients, **_):
    for client in clients:
        assert client.post("/signout").status_code == 204


def change_password(sign_in, **_):
    client = sign_in("ada")
    change = {"password": "another walk by the sea", "current_password": PASSWORD}
    assert client.patch(f"/users/{client.user['id']}", json=change).status_code == 200


def suspend(flask, **_):
    assert flask("users", "suspend", "ada")[0] == 0


def delete_account(sign_in, **_):
    client = sign_in("ada")
    assert client.delete(f"/users/{client.user['id']}").status_code == 204


@pytest.mark.parametrize("end_sessions", [sign_out, change_password, suspend, delete_account])
def test_copied_cookies_are_refused_once_their_sessions_have_ended(flask, sign_in, end_sessions):
    clients = [sign_in("ada") for _ in range(SESSIONS_PER_USER)]
    copies = [client.copy() for client in clients]
    assert len({copy.session_token for copy in copies}) == SESSIONS_PER_USER
    assert copies[-1].get("/users/me").status_code == 200
    end_sessions(sign_in=sign_in, flask=flask, clients=clients)
    for copy in copies:
        assert_problem(copy.get("/users/me"), 401)
        assert_problem(copy.post("/posts", json={"title": "a", "content": "b"}), 401)
