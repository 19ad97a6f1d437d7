"""Links to choose a password, which moderators make for members, and owners for everybody."""

from unittest.mock import patch

import pytest

from posting.accounts import passwords
from posting.testbed import PASSWORD
from tests.helpers.assertions import error_locations
from tests.helpers.clock import shifted_clock
from tests.helpers.notifications import told

NEW = "another walk by the sea"


def make_link(client, member, password=PASSWORD):
    body = {"current_password": password}
    return client.post(f"/users/{member.user['id']}/reset-link", json=body)


def code_of(response):
    assert response.status_code == 201, response.text
    assert response.json["url"].startswith("http://localhost/reset#")
    return response.json["url"].partition("#")[2]


def news_of(client):
    return [item for item in told(client) if item["kind"] == "reset_link"]


def use(anonymous, code):
    return anonymous.post("/password-resets", json={"code": code, "password": NEW})


class TestLinks:
    def test_a_member_chooses_a_password_with_it_once(self, moderator, bob, anonymous):
        code = code_of(make_link(moderator, bob))
        response = use(anonymous, code)
        assert (response.status_code, response.json["username"]) == (200, "bob")
        assert use(anonymous, code).status_code == 422
        assert bob.get("/users/me").status_code == 401  # all former sessions have ended
        credentials = {"username": "bob", "password": NEW}
        assert anonymous.post("/signin", json=credentials).status_code == 200

    def test_it_works_for_a_day(self, moderator, bob, anonymous):
        response = make_link(moderator, bob)
        code = code_of(response)
        with shifted_clock(hours=25):
            assert use(anonymous, code).status_code == 422

    def test_a_new_link_replaces_the_former_one(self, moderator, bob, anonymous):
        first, second = (code_of(make_link(moderator, bob)) for _ in range(2))
        assert use(anonymous, first).status_code == 422
        assert use(anonymous, second).status_code == 200

    def test_the_password_of_the_moderator_is_needed(self, moderator, bob):
        response = make_link(moderator, bob, password="not the password")
        assert error_locations(response) == {"/current_password"}
        assert moderator.get("/moderation/log").json == []

    def test_the_member_finds_a_notification_and_the_log_has_it(
        self, moderator, owner, bob, anonymous
    ):
        use(anonymous, code_of(make_link(moderator, bob)))
        bob.post("/signin", json={"username": "bob", "password": NEW})
        [item] = news_of(bob)
        assert (item["actor"]["username"], item["excerpt"]) == ("morgan", "bob")
        assert news_of(owner) == []
        [act] = moderator.get("/moderation/log").json
        assert (act["action"], act["by"]) == ("reset link", "morgan")
        assert act["user"]["username"] == "bob"


class TestWhom:
    @pytest.mark.parametrize(
        ("role", "code"), [("moderator", "target_is_moderator"), ("owner", "target_is_owner")]
    )
    def test_a_moderator_makes_none_for_those_above(self, moderator, sign_in, role, code):
        response = make_link(moderator, sign_in("grace", role=role))
        assert (response.status_code, response.json["code"]) == (403, code)

    @pytest.mark.parametrize("role", ["moderator", "owner"])
    def test_an_owner_makes_one_for_everybody(self, owner, sign_in, anonymous, role):
        use(anonymous, code_of(make_link(owner, sign_in("grace", role=role))))

    def test_all_owners_are_told_about_a_link_for_an_owner(self, owner, sign_in):
        grace, hedy = sign_in("grace", role="owner"), sign_in("hedy", role="owner")
        code_of(make_link(owner, grace))
        assert [item["excerpt"] for item in news_of(hedy)] == ["grace"]
        assert news_of(owner) == []

    def test_somebody_who_applies_has_no_password(self, owner, id_of):
        url = f"/users/{id_of('application')}/reset-link"
        response = owner.post(url, json={"current_password": PASSWORD})
        assert response.json["code"] == "no_such_user"


class TestRoles:
    @pytest.mark.parametrize("role", ["moderator", "owner"])
    def test_a_link_ends_if_the_role_of_the_member_changes(
        self, moderator, owner, bob, anonymous, role
    ):
        """Else a moderator would make a link for a member, and use it when the member is more."""
        code = code_of(make_link(moderator, bob))
        body = {"role": role, "current_password": PASSWORD}
        assert owner.put(f"/users/{bob.user['id']}/role", json=body).status_code == 200
        assert use(anonymous, code).status_code == 422

    @pytest.mark.parametrize("maker", ["moderator", "owner"])
    @pytest.mark.usefixtures("second_owner")  # else the last owner would stay
    def test_one_who_is_demoted_meanwhile_makes_none(self, maker, request, bob, flask):
        client = request.getfixturevalue(maker)
        endpoint = client.application.view_functions["moderation.create_reset_link"]

        def demote(**arguments):
            passwords.verify_own_password(**arguments)
            assert flask("users", "demote", client.user["username"])[0] == 0

        with patch.dict(endpoint.__dict__, prepare=demote):
            assert make_link(client, bob).status_code == 403
        assert news_of(bob) == []

    @pytest.fixture
    def second_owner(self, sign_in):
        return sign_in("grace", role="owner")
