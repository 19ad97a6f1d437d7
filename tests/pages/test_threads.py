"""The order and the indentation of comments."""

from posting.pages.threads import arrange


def comment(id, parent=None):
    return {"id": id, "parent_id": parent}


def outline(comments):
    return [(item.comment["id"], item.level, item.in_reply_to) for item in arrange(comments)]


def test_replies_follow_their_parents_oldest_first():
    comments = [comment("a"), comment("b"), comment("c", "a"), comment("d", "c"), comment("e", "a")]
    assert outline(comments) == [
        ("a", 1, None),
        ("c", 2, None),
        ("d", 3, None),
        ("e", 2, None),
        ("b", 1, None),
    ]


def test_deep_replies_stay_at_the_sixth_level_and_name_their_parent():
    chain = [comment("0")] + [comment(str(n), str(n - 1)) for n in range(1, 50)]
    found = outline(chain)
    assert [level for _, level, _ in found] == [1, 2, 3, 4, 5] + [6] * 45
    assert found[5] == ("5", 6, None)
    assert found[6] == ("6", 6, "5")


def test_a_thread_may_be_deeper_than_pythons_stack():
    chain = [comment("0")] + [comment(str(n), str(n - 1)) for n in range(1, 5000)]
    assert len(arrange(chain)) == 5000


def test_a_reply_to_a_comment_on_an_earlier_page_begins_a_thread():
    assert outline([comment("b", "a"), comment("c", "b")]) == [("b", 1, "a"), ("c", 2, None)]


def test_no_comments_are_no_thread():
    assert arrange([]) == []
