"""The list of all members, for the API and as a page."""

import pytest

from tests.helpers.assertions import error_locations, follow_pages


@pytest.fixture
def members(sign_in):
    """Members, in the order in which they have joined."""
    names = ["hedy", "Ada", "grace-2", "grace_1", "Grace"]
    return {name: sign_in(name) for name in names}


def names(items):
    return [item["username"] for item in items]


class TestApi:
    @pytest.mark.parametrize("query", ["", "&sort=newest"])
    def test_newest_are_first(self, members, anonymous, query):
        pages = [names(page) for page in follow_pages(anonymous, f"/users?limit=2{query}")]
        assert [len(page) for page in pages] == [2, 2, 1]
        found = [name for page in pages for name in page]
        assert sorted(found) == sorted(members)
        times = [item["created_at"] for item in anonymous.get("/users").json]
        assert times == sorted(times, reverse=True)

    def test_by_name_the_case_does_not_count(self, members, anonymous):
        pages = [names(page) for page in follow_pages(anonymous, "/users?sort=name&limit=2")]
        assert pages == [["Ada", "Grace"], ["grace-2", "grace_1"], ["hedy"]]

    def test_an_applicant_is_not_in_it(self, anonymous, id_of):
        before = names(anonymous.get("/users").json)
        id_of("application")
        for sort in ("name", "newest"):
            assert sorted(names(anonymous.get(f"/users?sort={sort}").json)) == sorted(before)

    def test_it_counts_posts_up_to_100(self, alice, bob, anonymous, monkeypatch):
        for number in range(3):
            post = alice.create_post(f"Post {number}")
        alice.delete(f"/posts/{post['id']}")
        counts = {item["username"]: item["post_count"] for item in anonymous.get("/users").json}
        assert counts == {"alice": 2, "bob": 0}

    @pytest.mark.parametrize(
        ("query", "location"),
        [
            ("sort=age", "sort"),
            ("sort=name&q=a", "sort"),
            ("sort=name&username=alice", "sort"),
            ("cursor=x", "cursor"),
            ("sort=name&cursor=users.1.aaaaaaaaaaaaaaaaaaaaa", "cursor"),
            ("cursor=users_by_name.ada", "cursor"),
            ("sort=name&cursor=users_by_name.%00", "cursor"),
        ],
    )
    def test_a_wrong_query(self, anonymous, query, location):
        assert error_locations(anonymous.get(f"/users?{query}")) == {location}


class TestPage:
    def test_it_has_all_members(self, members, anonymous, monkeypatch):
        monkeypatch.setattr("posting.pages.views.MEMBERS_PER_PAGE", 3)
        members["Ada"].create_post("On engines")
        page = anonymous.get("/members?sort=name").text
        places = [page.index(f'/@{name}"') for name in ("Ada", "Grace", "grace-2")]
        assert places == sorted(places)
        assert "/@hedy" not in page
        assert "1 post<" in page
        assert "cursor=users_by_name.grace-2" in page
        assert "/@hedy" in anonymous.get("/members?sort=name&cursor=users_by_name.grace-2").text

    def test_all_pages_lead_to_it(self, anonymous):
        assert 'href="/members"' in anonymous.get("/").text
