"""`GET /posts?q=`: what is of posts alone. For all else see `tests/search/`."""

from tests.helpers.assertions import error_locations


def titles(client, q):
    response = client.get("/posts", query_string={"q": q})
    assert response.status_code == 200, response.text
    return [post["title"] for post in response.json]


def test_posts_are_found_by_words_of_their_title_and_content(alice):
    alice.create_post("On engines", content="They *weave* algebra.")
    alice.create_post("On looms", content="Looms weave cloth.")
    assert titles(alice, "engines") == titles(alice, "algebra on") == ["On engines"]
    assert titles(alice, "on") == ["On looms", "On engines"]
    assert titles(alice, '"engines they"') == []  # a phrase is in the title or in the content


def test_an_edit_of_the_title_changes_what_is_found(alice):
    post = alice.create_post("On engines", content="Algebra")
    alice.patch(f"/posts/{post['id']}", json={"title": "On looms"})
    assert (titles(alice, "engines"), titles(alice, "looms algebra")) == ([], ["On looms"])


def test_results_may_be_whole_posts(alice, anonymous):
    alice.create_post("On engines", content="Algebra")
    [post] = anonymous.get("/posts?q=algebra&expand=content,images").json
    assert (post["content"], post["images"]) == ("Algebra", [])


def test_results_have_no_other_order(anonymous):
    assert error_locations(anonymous.get("/posts?q=x&sort=active")) == {"sort"}
    assert anonymous.get("/posts?q=x&sort=new").status_code == 200
