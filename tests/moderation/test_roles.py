"""Roles: owners make moderators and owners, and one active owner always stays."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from posting.testbed import PASSWORD
from tests.helpers.assertions import error_locations
from tests.helpers.moderation import suspend


def set_role(client, member, role, password=PASSWORD):
    body = {"role": role, "current_password": password}
    return client.put(f"/users/{member.user['id']}/role", json=body)


def role_of(client):
    return client.get("/users/me").json["role"]


def news_of(client):
    items = client.get("/notifications").json
    return [(each["kind"], each["excerpt"], each["reason"]) for each in items]


class TestChanges:
    @pytest.mark.parametrize("role", ["moderator", "owner"])
    def test_an_owner_gives_a_member_a_role_and_takes_it_away(self, owner, bob, role):
        for wanted in (role, role, "member"):
            response = set_role(owner, bob, wanted)
            assert (response.status_code, response.json["role"]) == (200, wanted)
            assert role_of(bob) == wanted
        acts = [act["action"] for act in owner.get("/moderation/log").json]
        assert acts == ["demoted", "made owner" if role == "owner" else "promoted"]

    def test_the_member_and_all_owners_are_told(self, owner, bob, sign_in):
        other = sign_in("grace", role="owner")
        set_role(owner, bob, "moderator")
        news = [("role", "bob", "moderator")]
        assert (news_of(bob), news_of(other), news_of(owner)) == (news, news, [])

    def test_the_password_is_needed(self, owner, bob):
        response = set_role(owner, bob, "owner", password="not the password")
        assert response.status_code == 422
        assert role_of(bob) == "member"

    def test_another_role_does_not_exist(self, owner, bob):
        assert error_locations(set_role(owner, bob, "king")) == {"/role"}

    def test_somebody_who_applies_has_no_role(self, owner, id_of):
        body = {"role": "moderator", "current_password": PASSWORD}
        response = owner.put(f"/users/{id_of('application')}/role", json=body)
        assert response.json["code"] == "no_such_user"


class TestLastOwner:
    def test_the_last_owner_stays(self, owner):
        for role in ("member", "moderator"):
            response = set_role(owner, owner, role)
            assert (response.status_code, response.json["code"]) == (409, "last_owner")
        for query in ("keep", "delete"):
            response = owner.delete(f"/users/me?content={query}")
            assert (response.status_code, response.json["code"]) == (409, "last_owner")
        assert role_of(owner) == "owner"

    def test_an_owner_who_is_suspended_does_not_count(self, owner, sign_in, flask):
        sign_in("grace", role="owner")
        assert flask("users", "suspend", "grace")[0] == 0
        assert set_role(owner, owner, "member").json["code"] == "last_owner"

    def test_with_another_owner_one_may_go(self, owner, sign_in):
        sign_in("grace", role="owner")
        assert set_role(owner, owner, "member").status_code == 200
        assert owner.delete("/users/me?content=keep").status_code == 204

    def test_of_two_owners_who_demote_each_other_one_stays(self, owner, sign_in):
        other = sign_in("grace", role="owner")
        with ThreadPoolExecutor(2) as pool:
            responses = [*pool.map(set_role, (owner, other), (other, owner), ("member", "member"))]
        assert sorted(response.status_code for response in responses)[0] == 200
        assert sorted(map(role_of, (owner, other))) == ["member", "owner"]

    @pytest.mark.parametrize(
        "arguments",
        [["demote"], ["promote"], ["suspend"], ["delete", "--content", "keep", "--yes"]],
    )
    def test_not_even_an_operator_removes_the_last_one(self, owner, flask, arguments):
        command, *options = arguments
        code, output = flask("users", command, owner.user["username"], *options)
        assert code == 1
        assert "is the only active owner. First run: flask users promote" in output
        assert role_of(owner) == "owner"


class TestActs:
    """What owners and moderators may do to each other."""

    def test_moderators_do_not_act_on_moderators_or_owners(self, moderator, owner, sign_in):
        other = sign_in("grace", role="moderator")
        for target, code in ((other, "target_is_moderator"), (owner, "target_is_owner")):
            url = f"/users/{target.user['id']}/suspension"
            response = moderator.put(url, json={"reason": "x"})
            assert (response.status_code, response.json["code"]) == (403, code)

    def test_owners_act_on_moderators(self, owner, moderator):
        suspend(owner, moderator)
        assert moderator.get("/users/me").status_code == 401
        path = f"/users/{moderator.user['id']}/suspension"
        assert owner.delete(path).status_code == 204

    def test_owners_do_not_act_on_owners(self, owner, sign_in):
        other = sign_in("grace", role="owner")
        response = owner.put(f"/users/{other.user['id']}/suspension", json={"reason": "x"})
        assert response.json["code"] == "target_is_owner"

    def test_an_owner_is_a_moderator_too(self, owner, bob, post):
        assert owner.get("/reports").status_code == 200
        assert owner.delete(f"/posts/{post['id']}").status_code == 204


def test_commands_make_owners(flask, alice):
    assert flask("users", "promote", "alice", "--owner") == (0, "alice is an owner now.\n")
    assert flask("users", "create", "grace", "--owner")[1].startswith("grace is an owner now.\n")
    assert flask("users", "promote", "alice") == (0, "alice is a moderator now.\n")
