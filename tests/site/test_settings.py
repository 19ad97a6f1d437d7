"""What owners choose for the site: from the next request, in all processes."""

import re
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from unittest import mock

import pytest
import sqlalchemy as sa
from PIL import Image

from posting.config import SETTINGS
from posting.db.commits import CommitWatch
from posting.site import settings
from posting.site.colors import DARK, LIGHT, MIN_CONTRAST, contrast, on_dark
from posting.site.settings import CHOICES, TEXTS
from tests.conftest import set_picture
from tests.helpers import pictures
from tests.helpers.assertions import error_locations

CHOSEN = {
    "name": "The Loom",
    "description": "A place for people who weave.",
    "about": "We *weave*.",
    "rules": "Be **kind**.",
    "accent": "#204f95",
    "signup": "approval",
    "invitations": "members",
    "reading": "members",
    "moderation_log": "public",
    "language": "de",
}


def choose(owner, **changes):
    response = owner.patch("/site", json=changes)
    assert response.status_code == 200, response.text
    return response


class TestChoices:
    def test_all_of_them_hold_from_the_next_request(self, owner, anonymous):
        assert set(CHOSEN) == {*TEXTS, *CHOICES}
        response = choose(owner, **CHOSEN)
        assert CHOSEN.items() <= response.json.items()
        read = anonymous.get("/site")
        assert read.json == response.json
        assert read.headers["ETag"] == response.headers["ETag"]
        assert read.headers["Posting-Reading"] == "members"

    @pytest.mark.parametrize("value", [None, ""])
    def test_null_and_an_empty_text_stand_for_the_default(self, owner, anonymous, value):
        before = anonymous.get("/site").json
        choose(owner, name="The Loom", rules="Be kind.")
        choose(owner, name=value, rules=value)
        assert anonymous.get("/site").json == before

    def test_they_hold_in_another_process(self, owner, make_app):
        other = make_app().test_client()
        assert other.get("/site").json["name"] == "Posting"
        choose(owner, name="The Loom")
        assert other.get("/site").json["name"] == "The Loom"
        assert "The Loom" in other.get("/").text

    def test_pages_feeds_and_the_manifest_have_the_name(self, owner, anonymous):
        for name in ("The Loom", "The Mill"):
            choose(owner, name=name, description=f"This is {name}.")
            for path in ("/", "/signin", "/feed.atom", "/feed.json", "/manifest.webmanifest"):
                assert name in anonymous.get(path).text, path
        assert "This is The Mill." in anonymous.get("/").text

    def test_who_may_sign_up_and_invite(self, owner, bob, anonymous):
        newcomer = {"username": "newcomer", "password": "a long walk by the sea"}
        choose(owner, signup="closed", invitations="members")
        assert anonymous.post("/signup", json=newcomer).json["code"] == "signup_closed"
        assert "Sign up" not in anonymous.get("/").text
        choose(owner, signup="invitation")
        assert bob.post("/invitations", json={}).status_code == 201
        choose(owner, invitations=None)
        assert bob.post("/invitations", json={}).status_code == 403

    def test_who_may_read_the_log(self, owner, bob):
        assert bob.get("/moderation/log").status_code == 403
        choose(owner, moderation_log="public")
        assert bob.get("/moderation/log").status_code == 200
        choose(owner, moderation_log=None)
        assert bob.get("/moderation/log").status_code == 403

    def test_each_change_is_in_the_log(self, owner):
        choose(owner, name="The Loom", accent=None)
        choose(owner, name="The Loom")  # which it is already
        [act] = owner.get("/moderation/log").json
        assert (act["action"], act["target"]["kind"], act["reason"]) == ("edited", "site", "name")

    def test_the_document_says_who_may_read(self, owner, anonymous):
        def security():
            return anonymous.get("/openapi.json").json["paths"]["/posts"]["get"]["security"]

        assert {} in security()
        choose(owner, reading="members")
        assert {} not in security()
        choose(owner, reading="everyone")
        assert {} in security()


class TestReading:
    """`web/test_reading.py` walks all routes with the same switch."""

    def test_what_was_cached_is_closed_at_once_and_opens_again(self, owner, anonymous, post):
        paths = [f"/posts/{post['id']}", f"/p/{post['id']}", "/", "/feed.atom", "/posts"]
        for _ in range(2):
            assert {anonymous.get(path).status_code for path in paths} == {200}
        choose(owner, reading="members")
        assert {anonymous.get(path).status_code for path in paths} == {401}
        assert "Disallow: /\n" in anonymous.get("/robots.txt").text
        for path in paths:
            assert "private" in owner.get(path).headers["Cache-Control"]
        choose(owner, reading="everyone")
        assert {anonymous.get(path).status_code for path in paths} == {200}

    def test_unknown_paths_are_closed_too(self, owner, anonymous):
        assert anonymous.get("/nothing").status_code == 404
        choose(owner, reading="members")
        assert anonymous.get("/nothing").status_code == 401

    def test_other_origins_read_no_more(self, owner, anonymous):
        headers = {"Origin": "https://example.net"}
        assert "Access-Control-Allow-Origin" in anonymous.get("/posts", headers=headers).headers
        choose(owner, reading="members")
        response = anonymous.get("/posts", headers=headers)
        assert "Access-Control-Allow-Origin" not in response.headers


ERROR = sa.exc.OperationalError("SELECT", {}, Exception("timeout"))


class TestDatabaseThatFails:
    def test_nothing_is_cached_with_settings_that_may_be_old(self, owner, post, make_app):
        visitor, path = make_app().test_client(), f"/posts/{post['id']}"
        assert visitor.get(path).status_code == 200
        choose(owner, reading="members")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(settings, "find_choices", mock.Mock(side_effect=ERROR))
            visitor.get(path)  # as it was when the settings were last read
        assert visitor.get(path).status_code == 401

    def test_only_members_read_until_the_settings_are_known(self, post, make_app, monkeypatch):
        visitor = make_app().test_client()
        with monkeypatch.context() as patch:
            patch.setattr(settings, "find_choices", mock.Mock(side_effect=ERROR))
            assert visitor.get("/posts").status_code == 401
        assert visitor.get("/posts").status_code == 200

    def test_an_operator_who_has_set_it_is_not_asked(self, post, make_app, monkeypatch):
        visitor = make_app(READING="everyone").test_client()
        monkeypatch.setattr(settings, "find_choices", mock.Mock(side_effect=ERROR))
        assert visitor.get("/posts").status_code == 200

    def test_they_are_read_while_the_version_is_not_known(self, owner, anonymous, monkeypatch):
        assert anonymous.get("/posts").status_code == 200
        monkeypatch.setattr(CommitWatch, "version", lambda _: None)
        choose(owner, reading="members")
        assert anonymous.get("/posts").status_code == 401

    def test_of_two_reads_the_later_one_counts(self, owner, app, monkeypatch):
        """Even if the earlier one ends later."""
        current = app.extensions[settings.EXTENSION]
        read = settings.find_choices

        def read_twice(*_):
            found = read()
            monkeypatch.setattr(settings, "find_choices", read)
            choose(owner, name="The Loom")
            current.refresh()
            return found

        with app.app_context():
            current.refresh()
            monkeypatch.setattr(settings, "find_choices", read_twice)
            current.refresh()
        assert app.config["NAME"] == "The Loom"


class TestSignUpMeanwhile:
    @pytest.mark.parametrize(
        ("rule", "status"), [("closed", 403), ("invitation", 422), ("approval", 422)]
    )
    def test_the_rule_at_the_end_counts(self, owner, anonymous, monkeypatch, rule, status):
        def hash_password(*_):
            choose(owner, signup=rule)
            return "x"

        monkeypatch.setattr("posting.accounts.views.auth.hash_password", hash_password)
        newcomer = {"username": "newcomer", "password": "a long walk by the sea"}
        assert anonymous.post("/signup", json=newcomer).status_code == status
        assert anonymous.get("/users?username=newcomer").json == []


class TestWrongValues:
    @pytest.mark.parametrize(
        ("name", "value", "code"),
        [
            ("name", " ", "blank"),
            ("name", "x" * 61, "too_long"),
            ("name", "two\nlines", "line_break"),
            ("name", "\u202etfel", "open_direction"),
            ("description", "x" * 201, "too_long"),
            ("about", "x" * 20_001, "too_long"),
            ("rules", "x" * 20_001, "too_long"),
            ("accent", "blue", "malformed"),
            ("accent", "#204F95\n", "malformed"),
            ("accent", "#ffff00", "too_light"),
            ("signup", "sometimes", "not_a_choice"),
            ("reading", 1, "wrong_type"),
        ],
    )
    def test_the_error_is_at_the_field(self, owner, anonymous, name, value, code):
        before = anonymous.get("/site").json
        response = owner.patch("/site", json={name: value, "invitations": "members"})
        assert error_locations(response) == {f"/{name}"}
        assert [error["code"] for error in response.json["errors"]] == [code]
        assert anonymous.get("/site").json == before

    def test_an_unknown_field(self, owner):
        assert error_locations(owner.patch("/site", json={"version": "2"})) == {"/version"}


SET = {"NAME": "The Mill", "READING": "everyone"}


class TestTheOperatorWins:
    def test_what_the_operator_has_set_cannot_be_changed(self, owner, make_app):
        other = owner.copy(make_app(**SET))
        assert other.get("/site").json["fixed"] == ["name", "reading"]
        response = other.patch("/site", json={"name": "x", "reading": "members", "rules": "x"})
        assert error_locations(response) == {"/name", "/reading"}
        assert {error["code"] for error in response.json["errors"]} == {"fixed"}
        assert other.get("/site").json["rules"] is None

    def test_what_was_chosen_before_does_not_hold(self, owner, make_app):
        choose(owner, name="The Loom", reading="members", rules="Be kind.")
        site = owner.copy(make_app(**SET)).get("/site").json
        expected = {"name": "The Mill", "reading": "everyone", "rules": "Be kind."}
        assert expected.items() <= site.items()

    @pytest.mark.parametrize("setting", [each for each in SETTINGS if each.name.lower() in CHOSEN])
    def test_each_variable_fixes_its_field(self, make_app, monkeypatch, setting):
        monkeypatch.setenv(setting.variable, str(setting.default or "x"))
        site = make_app().test_client().get("/site").json
        assert site["fixed"] == [setting.name.lower()]

    def test_the_file_about_md_fixes_the_text(self, owner, make_app, tmp_path):
        choose(owner, about="Of owners.", rules="Be kind.")
        (tmp_path / "about.md").write_text("Of the operator.")
        other = owner.copy(make_app(INSTANCE_PATH=str(tmp_path)))
        assert other.get("/site").json["fixed"] == ["about"]
        page = other.get("/about").text
        assert "Of the operator." in page
        assert "Be kind." in page
        assert "Of owners." not in page


class TestTwoOwners:
    def test_the_second_one_overwrites_nothing(self, owner, sign_in):
        grace = sign_in("grace", role="owner")
        etag = grace.get("/site").headers["ETag"]
        choose(owner, name="The Loom")
        headers = {"If-Match": etag}
        response = grace.patch("/site", json={"name": "The Mill"}, headers=headers)
        assert (response.status_code, response.json["code"]) == (412, "stale_version")
        assert grace.get("/site").json["name"] == "The Loom"

    def test_of_many_at_once_one_wins(self, owner):
        headers = {"If-Match": owner.get("/site").headers["ETag"]}

        def send(number):
            body = {"name": f"Name {number}"}
            return owner.copy().patch("/site", json=body, headers=headers).status_code

        with ThreadPoolExecutor(8) as pool:
            statuses = sorted(pool.map(send, range(8)))
        assert statuses == [200] + [412] * 7


class TestAbout:
    def test_it_shows_the_text_and_the_rules(self, owner, anonymous):
        assert anonymous.get("/about").status_code == 404
        assert "/about" not in anonymous.get("/").text
        choose(owner, rules="Be **kind**. <script>alert(1)</script>")
        page = anonymous.get("/about").text
        assert "<strong>kind</strong>" in page
        assert "<script>alert" not in page
        assert "/about#rules" in anonymous.get("/signup").text
        choose(owner, about="We *weave*.")
        assert "<em>weave</em>" in anonymous.get("/about").text
        assert "/about" in anonymous.get("/").text


class TestAccent:
    def test_pages_have_it(self, owner, anonymous):
        assert anonymous.get("/accent.css").status_code == 404
        choose(owner, accent="#8a1c5a")
        assert "/accent.css" in anonymous.get("/").text
        css = anonymous.get("/accent.css")
        assert css.mimetype == "text/css"
        light, dark = re.findall("--accent: (#[0-9a-f]{6});", css.text)
        assert light == "#8a1c5a"
        assert contrast(dark, DARK) >= MIN_CONTRAST

    @pytest.mark.parametrize("color", ["#000000", "#204f95", "#8a1c5a", "#006400", "#0000ff"])
    def test_the_color_of_dark_pages_can_be_read(self, color):
        assert contrast(color, LIGHT) >= MIN_CONTRAST
        assert contrast(on_dark(color), DARK) >= MIN_CONTRAST

    def test_contrast_is_that_of_wcag(self):
        assert contrast("#ffffff", "#000000") == pytest.approx(21)
        assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
        assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


class TestCover:
    def test_visitors_and_previews_of_links_show_it(self, owner, anonymous):
        form = {"file": (BytesIO(pictures.photo((1400, 900))), "cover.jpg")}
        url = owner.put("/site/cover", data=form).json["cover_url"]
        path = url.removeprefix("http://localhost")
        for width, size in (("", (1280, 426)), ("/768", (768, 256))):
            response = anonymous.get(path + width)
            assert response.mimetype == "image/webp"
            assert "immutable" in response.headers["Cache-Control"]
            assert Image.open(BytesIO(response.data)).size == size
        front = anonymous.get("/").text
        assert f'<meta property="og:image" content="{url}">' in front
        assert f'srcset="{path}/768 768w, {path} 1280w"' in front
        assert owner.delete("/site/cover").status_code == 204
        assert owner.delete("/site/cover").status_code == 204
        assert anonymous.get(path).json["code"] == "no_such_cover"
        assert "/site/cover" not in anonymous.get("/").text
        assert [act["reason"] for act in owner.get("/moderation/log").json] == ["cover", "cover"]

    def test_its_addresses_are_those_of_the_public_url(self, make_app):
        app = make_app(PUBLIC_URL="https://example.org/forum")
        id = set_picture(app, "cover")
        front = app.test_client().get("/", base_url="https://example.org/forum").text
        url = f"https://example.org/forum/site/cover/{id}"
        assert f'<meta property="og:image" content="{url}">' in front
        assert f'src="/forum/site/cover/{id}"' in front

    def test_who_may_not_read_sees_none(self, app, owner, anonymous):
        id = set_picture(app, "cover")
        choose(owner, reading="members")
        assert id not in anonymous.get("/").text

    def test_it_leaves_the_logo(self, owner):
        form = {"file": (BytesIO(pictures.photo()), "logo.jpg")}
        logo = owner.put("/site/logo", data=form).json["logo_url"]
        form = {"file": (BytesIO(pictures.photo()), "cover.jpg")}
        assert owner.put("/site/cover", data=form).json["logo_url"] == logo
        owner.delete("/site/logo")
        site = owner.get("/site").json
        assert site["logo_url"] is None
        assert site["cover_url"]
        cover = site["cover_url"].rpartition("/")[2]
        assert owner.get(f"/site/logo/{cover}").status_code == 404

    def test_a_file_that_is_no_image(self, owner):
        response = owner.put("/site/cover", data={"file": (BytesIO(b"x"), "a.png")})
        assert error_locations(response) == {"/file"}


class TestLogo:
    @pytest.mark.usefixtures("cached_codec")
    def test_it_is_in_pages_and_the_manifest_until_it_is_deleted(self, owner, anonymous):
        form = {"file": (BytesIO(pictures.photo()), "logo.jpg")}
        url = owner.put("/site/logo", data=form).json["logo_url"]
        path = url.removeprefix("http://localhost")
        for side, size in (("", 256), ("/64", 64)):
            response = anonymous.get(path + side)
            assert response.mimetype == "image/webp"
            assert "immutable" in response.headers["Cache-Control"]
            assert Image.open(BytesIO(response.data)).size == (size, size)
        assert path in anonymous.get("/").text
        assert path in anonymous.get("/manifest.webmanifest").text
        assert owner.delete("/site/logo").status_code == 204
        assert owner.delete("/site/logo").status_code == 204
        assert anonymous.get(path).json["code"] == "no_such_logo"
        assert path not in anonymous.get("/").text
        assert [act["reason"] for act in owner.get("/moderation/log").json] == ["logo", "logo"]

    def test_a_file_that_is_no_image(self, owner):
        response = owner.put("/site/logo", data={"file": (BytesIO(b"x"), "a.png")})
        assert error_locations(response) == {"/file"}
