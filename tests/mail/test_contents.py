"""Mails about notifications: at once, daily and weekly, and the weekly letter."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from werkzeug.http import parse_cookie

from posting.mail.mornings import next_morning
from posting.notifications.telling import tell_of_comment
from posting.outbox.delivery import PermanentError, TemporaryError
from posting.testbed import PASSWORD
from tests.helpers.attacks import ATTACKS, assert_inert
from tests.helpers.clock import shifted_clock
from tests.helpers.moderation import report, suspend
from tests.mail.conftest import ADDRESS, SETTINGS, confirm, copy, html_of, text_of

QUOTE = re.compile(r"<blockquote dir=\"auto\" style=.*?>(.*)</blockquote>", re.DOTALL)
LONG = "A long walk by the sea. " * 100


def at(time):
    """Set the clock to a time."""
    return shifted_clock(seconds=(time - datetime.now(UTC)).total_seconds())


def tell_and(then):
    """Return a function that tells of a comment, and then calls another one."""

    def tell(*arguments):
        tell_of_comment(*arguments)
        then()

    return tell


def next_eight(zone="UTC", **after):
    return next_morning(zone, datetime.now(UTC) + timedelta(**after))


@pytest.fixture
def ada(join):
    return join("ada", ADDRESS, mail="each")


@pytest.fixture
def bob(join):
    return join("bob")


@pytest.fixture
def post(ada):
    return ada.create_post("On engines")


class TestEach:
    def test_a_comment_is_mailed_at_once(self, ada, bob, post, post_office):
        comment = bob.add_comment(post, "And *cloth*?")
        mail = post_office.deliver_one()
        assert mail["To"] == f"ada <{ADDRESS}>"
        assert mail["Subject"] == "Re: On engines"
        text = text_of(mail)
        assert text.startswith("bob commented on “On engines”.\n\n> And cloth?\n")
        url = f"https://elm.example/p/{post['id']}?comment={comment['id']}#c-{comment['id']}"
        assert f"\n{url}\n" in text
        assert f'href="{url}"' in html_of(mail)
        assert post_office.deliver() == []

    def test_the_headers_are_those_of_a_list(self, ada, bob, post, post_office):
        for content in ("One", "Two"):
            bob.add_comment(post, content)
        one, two = post_office.deliver()
        assert one["In-Reply-To"] == two["References"] == f"<{post['id']}@example.org>"
        assert one["Message-ID"] != two["Message-ID"]
        assert one["Auto-Submitted"] == "auto-generated"
        assert one["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert one["List-Unsubscribe"].startswith("<https://elm.example/unsubscribe/notifications/")
        assert one["List-Unsubscribe"][1:-1] in text_of(one)

    def test_all_kinds_are_mailed(self, ada, bob, post, post_office):
        comment = ada.add_comment(post, "Mine")
        bob.add_comment(post, "Yours", parent_id=comment["id"])
        bob.create_post("For @ada", content="Hello @ada")
        texts = sorted(text_of(mail).splitlines()[0] for mail in post_office.deliver())
        assert texts == ["bob mentioned you on “For @ada”.", "bob replied to you on “On engines”."]

    def test_moderators_get_reports(self, bob, post, post_office, moderator):
        keeper = copy(moderator, bob.application)
        confirm(keeper, post_office, "keeper@example.net")
        keeper.patch("/users/me/notifications", json={"mail": "each"})
        report(bob, "post", post)
        mail = post_office.deliver_one()
        assert mail["Subject"] == "bob reported something"
        assert "This is advertising." in text_of(mail)
        assert "https://elm.example/moderation\n" in text_of(mail)

    def test_a_report_is_only_a_link_if_a_moderator_wants_no_texts(
        self, bob, post, post_office, moderator
    ):
        keeper = copy(moderator, bob.application)
        confirm(keeper, post_office, "keeper@example.net")
        keeper.patch("/users/me/notifications", json={"mail": "each", "text": "link"})
        report(bob, "post", post)
        mail = post_office.deliver_one()
        assert "advertising" not in text_of(mail) + html_of(mail)
        assert "https://elm.example/moderation\n" in text_of(mail)

    @pytest.mark.parametrize("is_decided", [False, True])
    def test_moderators_get_applications(self, make_app, post_office, moderator, is_decided):
        """But none that another moderator has decided meanwhile."""
        keeper = copy(moderator, post_office.app)
        confirm(keeper, post_office, "keeper@example.net")
        keeper.patch("/users/me/notifications", json={"mail": "each"})
        app = make_app(**SETTINGS, SIGNUP="approval")
        account = {"username": "grace", "password": PASSWORD, "application": "I weave."}
        created = app.test_client().post("/signup", json=account)
        assert created.status_code == 201, created.text
        if is_decided:
            path = f"/applications/{created.json['id']}/approval"
            assert keeper.post(path).status_code == 201
        subjects = [mail["Subject"] for mail in post_office.deliver()]
        assert subjects == ([] if is_decided else ["grace asks for an account"])

    @pytest.mark.parametrize("rhythm", ["daily", "weekly", "none"])
    def test_others_get_none_at_once(self, ada, bob, post, post_office, rhythm):
        ada.patch("/users/me/notifications", json={"mail": rhythm})
        bob.add_comment(post, "And cloth?")
        assert post_office.deliver() == []


class TestNotSent:
    """Changes between a comment and its mail."""

    def test_what_was_read(self, ada, bob, post, post_office):
        comment = bob.add_comment(post, "And cloth?")
        body = {"up_to": comment["id"], "shown": [comment["id"]]}
        assert ada.put(f"/posts/{post['id']}/seen", json=body).status_code == 200
        assert post_office.deliver() == []

    def test_what_was_read_after_a_failure(self, ada, bob, post, post_office):
        comment = bob.add_comment(post, "And cloth?")
        post_office.problems.append(TemporaryError("451 Try again later"))
        assert post_office.deliver() == []
        body = {"up_to": comment["id"], "shown": [comment["id"]]}
        assert ada.put(f"/posts/{post['id']}/seen", json=body).status_code == 200
        with shifted_clock(minutes=2):
            assert post_office.deliver() == []

    def test_what_was_deleted(self, ada, bob, post, post_office):
        comment = bob.add_comment(post, "And cloth?")
        assert bob.delete(f"/comments/{comment['id']}").status_code == 204
        assert post_office.deliver() == []

    def test_what_is_on_a_post_that_was_deleted(self, ada, bob, post, post_office):
        bob.add_comment(post, "And cloth?")
        assert ada.delete(f"/posts/{post['id']}").status_code == 204
        assert post_office.deliver() == []

    def test_what_was_muted(self, ada, bob, post, post_office):
        bob.add_comment(post, "And cloth?")
        ada.put(f"/posts/{post['id']}/subscription", json={"level": "muted"})
        assert post_office.deliver() == []

    def test_what_was_unsubscribed(self, ada, bob, post, post_office):
        bob.add_comment(post, "And cloth?")
        ada.patch("/users/me/notifications", json={"mail": "none"})
        assert post_office.deliver() == []

    def test_to_a_member_who_was_suspended(self, ada, bob, post, post_office, moderator):
        bob.add_comment(post, "And cloth?")
        suspend(moderator, ada)
        assert post_office.deliver() == []

    def test_to_an_address_that_was_deleted(self, ada, bob, post, post_office):
        bob.add_comment(post, "And cloth?")
        ada.delete("/users/me/email")
        [mail] = post_office.deliver()
        assert "no longer uses" in mail["Subject"]

    def test_to_a_moderator_who_was_demoted(self, bob, post, post_office, moderator, flask):
        keeper = copy(moderator, bob.application)
        confirm(keeper, post_office, "keeper@example.net")
        keeper.patch("/users/me/notifications", json={"mail": "each"})
        report(bob, "post", post)
        flask("users", "demote", moderator.user["username"])
        assert post_office.deliver() == []

    def test_what_rolls_back(self, ada, bob, post, post_office, monkeypatch):
        def fail(*_arguments):
            raise ZeroDivisionError

        monkeypatch.setattr("posting.comments.store.tell_of_comment", tell_and(fail))
        with suppress(ZeroDivisionError):
            bob.post(f"/posts/{post['id']}/comments", json={"content": "x"})
        assert post_office.deliver() == []

    def test_digests_to_those_who_get_nothing_any_more(self, join, bob, post_office, moderator):
        """One has no confirmed address, and the other one is suspended."""
        grace = join("grace", mail="daily", letter=True)
        ada = join("ada", ADDRESS, mail="daily", letter=True)
        body = {"email": "grace@example.net", "current_password": PASSWORD}
        assert grace.put("/users/me/email", json=body).status_code == 202
        post_office.deliver_one()
        for client in (grace, ada):
            bob.add_comment(client.create_post("On looms"), "And cloth?")
        suspend(moderator, ada)
        with at(next_morning("UTC", datetime.now(UTC), on_monday=True) + timedelta(minutes=1)):
            assert post_office.deliver() == []

    def test_to_an_address_that_is_not_confirmed_yet(self, ada, bob, post, post_office):
        body = {"email": "new@example.net", "current_password": PASSWORD}
        assert ada.put("/users/me/email", json=body).status_code == 202
        post_office.deliver_one()
        bob.add_comment(post, "And cloth?")
        assert post_office.deliver_one()["To"].addresses[0].addr_spec == ADDRESS

    def test_to_those_without_a_confirmed_address(self, join, bob, post_office):
        grace = join("grace", mail="each")
        body = {"email": ADDRESS, "current_password": PASSWORD}
        grace.put("/users/me/email", json=body)
        post_office.deliver_one()
        bob.add_comment(grace.create_post("On looms"), "And cloth?")
        assert post_office.deliver() == []


class TestTexts:
    """The part of a text that a mail contains."""

    @pytest.mark.parametrize("choice", ["whole", "beginning", "link"])
    def test_a_member_chooses(self, ada, bob, post, post_office, choice):
        ada.patch("/users/me/notifications", json={"text": choice})
        bob.add_comment(post, LONG)
        mail = post_office.deliver_one()
        quoted = [line[2:] for line in text_of(mail).splitlines() if line.startswith("> ")]
        length = {"whole": len(LONG), "beginning": 202, "link": 0}[choice]
        assert length - 30 < len(" ".join(quoted)) <= length
        assert ("sea" in html_of(mail)) == (choice != "link")

    def test_a_digest_has_no_more_than_a_link_either(self, join, bob, post_office):
        ada = join("ada", ADDRESS, mail="daily", text="link")
        bob.add_comment(ada.create_post("On engines"), "a secret of the weavers")
        with at(next_eight() + timedelta(minutes=1)):
            mail = post_office.deliver_one()
        assert "On engines" in text_of(mail)
        assert "secret" not in text_of(mail) + html_of(mail)

    def test_a_whole_text_is_safe_and_has_no_images(self, ada, bob, post, post_office):
        ada.patch("/users/me/notifications", json={"text": "whole"})
        content = (
            "<script>alert(1)</script>\n\n<b>x</b> ![a cat](https://evil.example/cat.png) "
            "[link](javascript:alert(1)) @bob **bold**"
        )
        bob.add_comment(post, content)
        html = html_of(post_office.deliver_one())
        assert "<script" not in html
        assert "<img" not in html
        assert 'href="javascript:' not in html
        assert '<a href="https://evil.example/cat.png"' in html
        assert 'href="https://elm.example/@bob"' in html
        assert "<strong>bold</strong>" in html

    @pytest.mark.parametrize("choice", ["beginning", "whole"])
    def test_attacks_are_inert(self, ada, bob, post_office, choice):
        """In the text of a comment, and in the title of a post, which is the subject too."""
        ada.patch("/users/me/notifications", json={"text": choice})
        for number, text in enumerate(ATTACKS):
            title = text if text.isprintable() else f"Number {number}"
            bob.add_comment(ada.create_post(title), text)
        mails = post_office.deliver()
        assert len(mails) == len(ATTACKS)
        for mail in mails:
            quotes = QUOTE.findall(html_of(mail))
            assert len(quotes) == 1
            assert_inert(quotes[0])
            assert_inert(QUOTE.sub("", html_of(mail)).partition("<body")[2].partition(">")[2])

    @pytest.mark.parametrize("text", ["beginning", "whole"])
    def test_titles_and_names_are_escaped(self, join, bob, post_office, text):
        grace = join("grace", "g@example.net", mail="each", text=text)
        post = grace.create_post("<img src=x onerror=alert(1)>")
        bob.patch("/users/me", json={"display_name": "<b>Bo</b>"})
        bob.add_comment(post, "<i>Hi</i>")
        html = html_of(post_office.deliver_one())
        assert "<img" not in html
        assert "<b>Bo" not in html
        assert "&lt;b&gt;Bo&lt;/b&gt; commented on" in html

    def test_a_very_long_text_is_not_whole(self, ada, bob, post_office):
        ada.patch("/users/me/notifications", json={"text": "whole"})
        bob.create_post("Long", content="@ada " + "word " * 5_000)
        assert len(post_office.deliver_one().as_bytes()) < 10_000

    def test_a_footnote_leads_to_a_place_in_the_mail(self, ada, bob, post, post_office):
        ada.patch("/users/me/notifications", json={"text": "whole"})
        bob.add_comment(post, "A note[^1].\n\n[^1]: Below.")
        assert 'href="#fn-text-0-1"' in html_of(post_office.deliver_one())


class TestDigest:
    def test_a_day_of_ada(self, join, bob, post_office):
        """Bo answers three times, and the mail comes at eight in Ada's time zone."""
        zone = "America/New_York"
        ada = join("ada", ADDRESS, time_zone=zone)
        post = ada.create_post("On engines")
        comments = [bob.add_comment(post, f"Answer {number}") for number in (1, 2, 3)]
        body = {"up_to": comments[0]["id"], "shown": [comments[0]["id"]]}
        ada.put(f"/posts/{post['id']}/seen", json=body)
        eight = next_eight(zone)
        with at(eight - timedelta(seconds=30)):
            assert post_office.deliver() == []
        with at(eight + timedelta(seconds=1)):
            mail = post_office.deliver_one()
            assert mail["Subject"] == "2 new notifications at Elm Street"
            text = text_of(mail)
            assert text.startswith("2 new comments on “On engines” from bob.\n")
            assert "> Answer 2\n" in text
            assert "> Answer 3\n" in text
            assert "Answer 1" not in text
            first = comments[1]["id"]
            assert f"https://elm.example/p/{post['id']}?comment={first}#c-{first}\n" in text
            assert post_office.deliver() == []
            # She follows the link, and reads.
            ids = [comment["id"] for comment in comments]
            ada = sign_in_again(ada)
            body = {"up_to": ids[-1], "shown": ids}
            assert ada.put(f"/posts/{post['id']}/seen", json=body).status_code == 200
        with at(eight + timedelta(days=1, hours=1)):
            assert post_office.deliver() == []

    def test_what_was_mailed_is_not_mailed_again(self, join, bob, post_office):
        ada = join("ada", ADDRESS)
        post = ada.create_post("On engines")
        bob.add_comment(post, "One")
        with at(next_eight() + timedelta(minutes=1)):
            assert "One" in text_of(post_office.deliver_one())
            sign_in_again(bob).add_comment(post, "Two")
        with at(next_eight(days=1) + timedelta(minutes=1)):
            text = text_of(post_office.deliver_one())
            assert "Two" in text
            assert "One" not in text

    def test_a_weekly_mail_comes_on_monday(self, join, bob, post_office):
        ada = join("ada", ADDRESS, mail="weekly")
        bob.add_comment(ada.create_post("On engines"), "One")
        monday = next_morning("UTC", datetime.now(UTC), on_monday=True)
        assert monday.weekday() == 0
        with at(monday - timedelta(minutes=1)):
            assert post_office.deliver() == []
        with at(monday + timedelta(minutes=1)):
            assert "weekly" in text_of(post_office.deliver_one())

    def test_posts_are_apart_and_deleted_and_muted_ones_left_out(self, join, bob, post_office):
        ada = join("ada", ADDRESS)
        posts = [ada.create_post(title) for title in ("One", "Two", "Three", "Four")]
        for post in posts:
            bob.add_comment(post, f"On {post['title']}")
        ada.put(f"/posts/{posts[1]['id']}/subscription", json={"level": "muted"})
        ada.delete(f"/posts/{posts[2]['id']}")
        with at(next_eight() + timedelta(minutes=1)):
            text = text_of(post_office.deliver_one())
        assert "commented on “One”" in text
        assert "commented on “Four”" in text
        assert "Two" not in text
        assert "Three" not in text

    def test_a_busy_day_fits_into_a_mail(self, join, bob, post_office):
        ada = join("ada", ADDRESS, text="whole")
        for number in range(25):
            post = ada.create_post(f"Post {number}")
            for _ in range(9):
                bob.add_comment(post, LONG)
        with at(next_eight() + timedelta(minutes=1)):
            mail = post_office.deliver_one()
        assert mail["Subject"] == "200 or more new notifications at Elm Street"
        text = text_of(mail)
        assert "There is more in your inbox." in text
        assert text.count("> A long walk") == 3 * 20
        assert len(mail.as_bytes()) < 500_000

    def test_times_follow_the_choices(self, join, query):
        ada = join("ada", ADDRESS)
        columns = "SELECT digest_at, digested_until, letter_at FROM mailboxes"
        [daily] = query(columns)
        assert daily[0]
        assert daily[1]
        assert daily[2] is None
        ada.patch("/users/me/notifications", json={"mail": "each", "letter": True})
        [each] = query(columns)
        assert each[:2] == (None, None)
        assert each[2]
        ada.delete("/users/me/email")
        assert query(columns) == [(None, None, None)]

    def test_who_wants_each_from_now_on_gets_what_has_waited(self, join, bob, post_office):
        ada = join("ada", ADDRESS)
        bob.add_comment(ada.create_post("On engines"), "One")
        ada.patch("/users/me/notifications", json={"mail": "each"})
        assert "One" in text_of(post_office.deliver_one())

    def test_a_mention_in_a_post_is_not_a_comment(self, join, bob, post_office):
        ada = join("ada", ADDRESS, text="whole")
        post = bob.create_post("On looms", content="Hello @ada[^1].\n\n[^1]: A.")
        bob.add_comment(post, "@ada, again[^1].\n\n[^1]: B.")
        with at(next_eight() + timedelta(minutes=1)):
            mail = post_office.deliver_one()
        assert text_of(mail).startswith("2 new notifications about “On looms” from bob.\n")
        assert "?comment=" in text_of(mail)
        ids = re.findall(r'id="(fn-[^"]*)"', html_of(mail))
        assert len(set(ids)) == len(ids) == 2
        assert ada.get("/users/me").status_code == 200

    def test_a_clock_that_was_behind_brings_no_old_news(self, join, bob, post_office):
        ada = join("ada", ADDRESS)
        bob.add_comment(ada.create_post("On engines"), "One")
        with at(next_eight() + timedelta(minutes=1)):
            assert "One" in text_of(post_office.deliver_one())
        with at(datetime(1990, 1, 1, tzinfo=UTC)):
            assert post_office.deliver() == []
        with at(next_eight() + timedelta(days=10, minutes=1)):
            assert post_office.deliver() == []

    def test_a_member_who_never_opens_gets_no_mail_without_news(self, join, post_office, query):
        join("ada", ADDRESS)
        with at(next_eight() + timedelta(minutes=1)):
            assert post_office.deliver() == []
        assert query("SELECT 1 FROM outbox") == []


class TestLetter:
    def test_the_best_of_the_week(self, join, bob, post_office):
        join("ada", ADDRESS, letter=True)
        posts = [bob.create_post(title, content=f"About {title}") for title in ("Quiet", "Loud")]
        for _ in range(2):
            bob.add_comment(posts[1], "Yes")
        monday = next_morning("UTC", datetime.now(UTC), on_monday=True)
        with at(monday + timedelta(minutes=1)):
            [mail] = [each for each in post_office.deliver() if "week" in each["Subject"]]
        assert mail["Subject"] == "The week at Elm Street"
        text = text_of(mail)
        assert text.index("“Loud” by bob, 2 comments") < text.index("“Quiet” by bob\n")
        assert "> About Loud" in text
        assert "/unsubscribe/letter/" in mail["List-Unsubscribe"]

    def test_only_links_if_a_member_wants_no_texts(self, join, bob, post_office):
        join("ada", ADDRESS, letter=True, text="link")
        bob.create_post("On engines", content="a secret of the weavers")
        monday = next_morning("UTC", datetime.now(UTC), on_monday=True)
        with at(monday + timedelta(minutes=1)):
            mail = post_office.deliver_one()
        assert "On engines" in text_of(mail)
        assert "secret" not in text_of(mail) + html_of(mail)

    def test_none_without_posts(self, join, post_office):
        join("ada", ADDRESS, letter=True)
        with at(next_morning("UTC", datetime.now(UTC), on_monday=True) + timedelta(minutes=1)):
            assert post_office.deliver() == []


class TestUnsubscribe:
    def end(self, elm, mail):
        """Do what a mail program does (RFC 8058)."""
        url = mail["List-Unsubscribe"][1:-1].removeprefix("https://elm.example")
        data = {"List-Unsubscribe": "One-Click"}
        return url, elm.test_client().post(url, data=data)

    def test_a_post_ends_the_notifications(self, ada, bob, post, post_office, elm):
        bob.add_comment(post, "One")
        _, response = self.end(elm, post_office.deliver_one())
        assert (response.status_code, response.data) == (204, b"")
        assert ada.get("/users/me/notifications").json["mail"] == "none"
        bob.add_comment(post, "Two")
        assert post_office.deliver() == []

    def test_a_get_changes_nothing(self, ada, bob, post, post_office, elm):
        bob.add_comment(post, "One")
        url = post_office.deliver_one()["List-Unsubscribe"][1:-1]
        response = elm.test_client().get(url.removeprefix("https://elm.example"))
        assert response.status_code == 200
        assert response.content_type == "text/html; charset=utf-8"
        assert ada.get("/users/me/notifications").json["mail"] == "each"

    def test_the_letter_ends_alone(self, join, bob, post_office, elm):
        ada = join("ada", ADDRESS, letter=True)
        bob.create_post("On engines")
        with at(next_morning("UTC", datetime.now(UTC), on_monday=True) + timedelta(minutes=1)):
            _, response = self.end(elm, post_office.deliver_one())
        assert response.status_code == 204
        settings = ada.get("/users/me/notifications").json
        assert (settings["letter"], settings["mail"]) == (False, "daily")

    def test_an_unknown_key_changes_nothing(self, ada, elm):
        path = f"/unsubscribe/notifications/{'x' * 21}"
        assert elm.test_client().post(path).status_code == 204
        assert ada.get("/users/me/notifications").json["mail"] == "each"


class TestMornings:
    @pytest.mark.parametrize(
        ("zone", "after", "morning"),
        [
            ("UTC", "2026-11-28T07:59:59", "2026-11-28T08:00:00"),
            ("UTC", "2026-11-28T08:00:00", "2026-11-29T08:00:00"),
            ("Europe/Berlin", "2026-11-28T06:59:00", "2026-11-28T07:00:00"),
            ("Europe/Berlin", "2026-07-01T12:00:00", "2026-07-02T06:00:00"),
            ("Pacific/Kiritimati", "2026-11-28T12:00:00", "2026-11-28T18:00:00"),
            ("Pacific/Pago_Pago", "2026-11-28T12:00:00", "2026-11-28T19:00:00"),
            ("Gone/Nowhere", "2026-11-28T07:00:00", "2026-11-28T08:00:00"),
        ],
    )
    def test_the_next_morning(self, zone, after, morning):
        after, morning = (datetime.fromisoformat(f"{each}+00:00") for each in (after, morning))
        assert next_morning(zone, after) == morning

    def test_the_next_monday(self):
        saturday = datetime(2026, 11, 28, 12, tzinfo=UTC)
        monday = datetime(2026, 11, 30, 8, tzinfo=UTC)
        assert next_morning("UTC", saturday, on_monday=True) == monday
        assert next_morning("UTC", monday, on_monday=True) == monday + timedelta(days=7)


class TestSettings:
    def test_defaults(self, alice):
        expected = {"mail": "daily", "text": "beginning", "letter": False, "time_zone": "UTC"}
        expected |= {"push": True, "language": None}
        assert alice.get("/users/me/notifications").json == expected
        change = {"letter": True, "time_zone": "Europe/Berlin", "language": "de"}
        assert alice.patch("/users/me/notifications", json=change).json == expected | change
        assert alice.get("/users/me/notifications").json == expected | change

    @pytest.mark.parametrize(
        ("name", "value", "code"),
        [
            ("mail", "hourly", "not_a_choice"),
            ("text", "half", "not_a_choice"),
            ("language", "xx", "not_a_choice"),
            ("letter", "yes", "wrong_type"),
            ("letter", 1, "wrong_type"),
            ("letter", None, "null"),
            ("time_zone", "Europe/Atlantis", "not_a_choice"),
            ("time_zone", "../../etc/passwd", "not_a_choice"),
            ("push", "yes", "wrong_type"),
            ("other", True, "unknown"),
        ],
    )
    def test_other_values_are_refused(self, alice, name, value, code):
        response = alice.patch("/users/me/notifications", json={name: value})
        assert response.status_code == 422
        assert [(each["pointer"], each["code"]) for each in response.json["errors"]] == [
            (f"/{name}", code)
        ]


class TestRate:
    @pytest.fixture
    def settings(self):
        return {"RATE_LIMITS": "on", "MAIL_RATE": "3/minute", "LIMIT_LINKS": "off"}

    def test_mails_leave_at_the_rate_that_is_set(self, ada, bob, post, post_office):
        with shifted_clock(hours=1):
            bob = sign_in_again(bob)
            for number in range(5):
                bob.add_comment(post, f"Comment {number}")
            assert len(post_office.deliver()) == 3
            assert post_office.deliver() == []
        post_office.resume()
        with shifted_clock(hours=1, minutes=2):
            assert len(post_office.deliver()) == 2

    def test_what_is_urgent_does_not_wait(self, ada, bob, post, post_office):
        for number in range(5):
            bob.add_comment(post, f"Comment {number}")
        assert len(post_office.deliver()) == 3
        ada.post("/password-resets/requests", json={"name": "ada"})
        assert post_office.deliver_one()["Subject"] == "A new password for Elm Street"

    def test_a_server_that_is_down_uses_up_nothing(self, ada, bob, post, post_office):
        bob.add_comment(post, "x")
        post_office.is_down = True
        for _ in range(5):
            assert post_office.deliver() == []
            post_office.resume()
        post_office.is_down = False
        for _ in range(2):
            bob.add_comment(post, "y")
        assert len(post_office.deliver()) == 3


class TestLate:
    """Mails that wait for very long, such as while the service is off."""

    def test_nothing_is_sent_after_two_days(self, ada, bob, post, post_office, query):
        assert post_office.deliver() == []
        bob.add_comment(post, "x")
        with shifted_clock(days=3):
            assert post_office.deliver() == []
        assert query("SELECT error FROM outbox") == [("It has waited for too long",)]

    def test_a_link_for_a_password_is_not_sent_after_an_hour(self, ada, post_office):
        ada.post("/password-resets/requests", json={"name": "ada"})
        with shifted_clock(minutes=61):
            assert post_office.deliver() == []

    def test_a_digest_that_is_retried_has_what_it_had(self, join, bob, post_office, elm):
        ada = join("ada", ADDRESS)
        post = ada.create_post("On engines")
        bob.add_comment(post, "One")
        eight = next_eight()
        with at(eight + timedelta(minutes=1)):
            post_office.problems.append(PermanentError("554 Spam"))
            assert post_office.deliver() == []
            sign_in_again(bob).add_comment(post, "Two")
        with at(eight + timedelta(hours=5)):
            assert elm.test_cli_runner().invoke(args=["outbox", "retry"]).exit_code == 0
            text = text_of(post_office.deliver_one())
            assert "One" in text
            assert "Two" not in text
        with at(eight + timedelta(days=1, minutes=1)):
            assert "Two" in text_of(post_office.deliver_one())


def sign_in_again(client):
    """Return a client with a new session, since the clock has moved."""
    other = client.application.test_client()
    credentials = {"username": client.user["username"], "password": PASSWORD}
    response = other.post("/signin", json=credentials)
    assert response.status_code == 200
    cookie = parse_cookie(response.headers["Set-Cookie"])["__Host-session"]
    other.set_cookie("__Host-session", cookie)  # the client keeps it for HTTPS only
    other.user = client.user
    return other
