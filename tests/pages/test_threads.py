"""The order and the indentation of comments, and the pages of whole threads."""

import re

import pytest

from posting.pages import threads
from posting.pages.threads import arrange


def comment(id, parent=None):
    return {"id": id, "parent_id": parent}


def outline(comments):
    return [(item.comment["id"], item.level) for item in arrange(comments)]


def test_replies_follow_their_parents_oldest_first():
    comments = [comment("a"), comment("b"), comment("c", "a"), comment("d", "c"), comment("e", "a")]
    assert outline(comments) == [("a", 1), ("c", 2), ("d", 3), ("e", 2), ("b", 1)]


def test_deep_replies_stay_at_the_sixth_level():
    chain = [comment("0")] + [comment(str(n), str(n - 1)) for n in range(1, 50)]
    assert [level for _, level in outline(chain)] == [1, 2, 3, 4, 5] + [6] * 45


def test_a_thread_may_be_deeper_than_pythons_stack():
    chain = [comment("0")] + [comment(str(n), str(n - 1)) for n in range(1, 5000)]
    assert len(arrange(chain)) == 5000


def test_a_reply_to_a_comment_that_is_not_there_begins_a_thread():
    assert outline([comment("b", "a"), comment("c", "b")]) == [("b", 1), ("c", 2)]


def test_no_comments_are_no_thread():
    assert arrange([]) == []


class TestPages:
    @pytest.fixture(autouse=True)
    def _short_pages(self, monkeypatch):
        monkeypatch.setattr(threads, "COMMENTS_PER_PAGE", 4)

    @pytest.fixture
    def add(self, alice, post):
        """Return a function that adds comments, each named as its path in the tree."""
        ids = {}

        def add(*names):
            for name in names:
                parent = ids[name[:-1]] if len(name) > 1 else None
                ids[name] = alice.add_comment(post, f"Comment {name}", parent_id=parent)["id"]
            return ids

        return add

    @pytest.fixture
    def read(self, anonymous, post):
        """Return a function that reads a page, and returns its comments, lines and next query."""

        def read(query=""):
            html = anonymous.get(f"/p/{post['id']}{query}").text
            full = re.findall(r"<p>Comment (\w+)</p>", html)
            lines = re.findall(r">Comment (\w+)</a>", html)
            following = re.search(r'rel="next" href="([^"#]*)', html)
            return full, lines, following and following[1].replace("&amp;", "&")

        return read

    def read_all(self, read):
        pages, query = [], ""
        while query is not None:
            full, lines, query = read(query)
            pages.append((full, lines))
        return pages

    def test_a_page_has_whole_threads(self, add, read):
        add("a", "b", "c", "ba", "aa", "ca", "d")
        assert self.read_all(read) == [(["a", "aa", "b", "ba"], []), (["c", "ca", "d"], [])]

    def test_a_thread_that_does_not_fit_begins_the_next_page(self, add, read):
        add("a", "b", "aa", "ba", "bb")
        assert self.read_all(read) == [(["a", "aa"], []), (["b", "ba", "bb"], [])]

    def test_a_longer_thread_goes_on_with_the_comments_above_as_lines(self, add, read):
        add("a", "ab", "aba", "abaa", "abab", "ac", "b")
        assert self.read_all(read) == [
            (["a", "ab", "aba", "abaa"], []),
            (["abab", "ac", "b"], ["a", "ab", "aba"]),
        ]

    def test_pages_follow_each_other_while_comments_are_deleted(self, add, read, alice):
        ids = add("a", "aa", "ab", "ac", "ad", "b")
        first, _, query = read()
        assert first == ["a", "aa", "ab", "ac"]
        alice.delete(f"/comments/{ids['ac']}")
        alice.delete(f"/comments/{ids['aa']}")
        assert read(query)[:2] == (["ad", "b"], ["a"])

    def test_the_page_of_a_comment_begins_with_its_thread(self, add, read):
        ids = add("a", "b", "c", "ca", "d", "e")
        assert read(f"?comment={ids['ca']}")[:2] == (["c", "ca", "d", "e"], [])

    def test_the_page_of_a_comment_in_a_long_thread_begins_with_it(self, add, read):
        ids = add("a", "ab", "aba", "ac", "ad", "ada", "b")
        assert read(f"?comment={ids['ada']}")[:2] == (["ada", "b"], ["a", "ad"])

    @pytest.mark.parametrize("comment", ["", "short", "x" * 21])
    def test_for_an_unknown_comment_the_first_page_is_shown(self, add, read, comment):
        add("a", "b")
        assert read(f"?comment={comment}")[0] == ["a", "b"]

    def test_a_comment_on_another_post_is_unknown(self, add, read, alice):
        add("a", "b")
        other = alice.add_comment(alice.create_post("Another one"), "There")
        assert read(f"?comment={other['id']}")[0] == ["a", "b"]

    def test_a_page_of_long_comments_ends_early(self, add, read, monkeypatch):
        monkeypatch.setattr(threads, "MAX_LENGTH", 22)
        add("a", "b", "c", "ca", "cb")
        assert [full for full, _ in self.read_all(read)] == [["a", "b"], ["c", "ca"], ["cb"]]

    def test_a_comment_that_is_longer_than_a_page_is_shown(self, add, read, monkeypatch):
        monkeypatch.setattr(threads, "MAX_LENGTH", 5)
        add("a", "b")
        assert [full for full, _ in self.read_all(read)] == [["a"], ["b"]]

    def test_the_cursor_of_another_post_is_refused(self, add, read, alice, anonymous):
        add("a", "b", "c", "d", "e")
        query = read()[2]
        other = alice.create_post("Another one")
        assert anonymous.get(f"/p/{other['id']}{query}").status_code == 422

    @pytest.mark.parametrize("time", ["999999999999999", "-999999999999999"])
    def test_a_cursor_of_an_impossible_time_is_refused(self, anonymous, post, time):
        cursor = f"{post['id']}.{time}.{'x' * 21}"
        assert anonymous.get(f"/p/{post['id']}?cursor={cursor}").status_code == 422
