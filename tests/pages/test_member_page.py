"""The page of a member, and texts of members who are gone."""

from tests.helpers.pages import links, path_of


def test_a_member_is_shown_with_their_posts(alice, bob, read):
    alice.patch(f"/users/{alice.user['id']}", json={"bio": "I write\nabout engines."})
    post = alice.create_post("On engines")
    bob.create_post("Another one")
    page = read("/@ALICE")
    assert "Alice @alice" in page.text
    assert "about engines." in page.text
    assert path_of(post) in links(page)
    assert "Another one" not in page.text


def test_content_of_accounts_that_are_gone_is_shown_without_an_author(alice, post, read):
    alice.add_comment(post, "A comment")
    alice.delete(f"/users/{alice.user['id']}")
    assert read(path_of(post)).text.count("a former member") == 2
    assert "a former member" in read("/").text
    read("/@alice", 404)
