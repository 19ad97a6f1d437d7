"""An app that keeps a copy of the content by following the changes ends with the same content."""

from random import Random

import pytest

from posting import testbed
from tests.changes.test_changes import follow
from tests.helpers.assertions import follow_pages

WRITES = 1000
LIMIT = 7  # changes at a time, so that there are many pages


class Copy:
    """The client: it takes a cursor, reads everything, and then follows the changes."""

    def __init__(self, client):
        self.client = client
        self.cursor = client.get("/changes").json["cursor"]
        self.posts, self.comments, self.users = read_everything(client)

    def follow(self):
        """Read the changes that there are now, and return how many."""
        count = 0
        while True:
            changes, self.cursor = follow(self.client, self.cursor, wait=False, limit=LIMIT)
            for id in {change["post_id"] for change in changes} - {None}:
                self.read_again(self.posts, f"/posts/{id}", id)
            for id in {change["id"] for change in changes if change["kind"] == "comment"}:
                self.read_again(self.comments, f"/comments/{id}", id)
            for id in {change["id"] for change in changes if change["kind"] == "user"}:
                self.read_user_again(id)
            count += len(changes)
            if len(changes) < LIMIT:
                return count

    def read_again(self, items, path, id):
        response = self.client.get(path)
        if response.status_code == 404:
            items.pop(id, None)
        else:
            items[id] = response.json
            author = response.json.get("author")  # a user has none
            if author and author["id"] not in self.users:
                self.read_again(self.users, f"/users/{author['id']}", author["id"])

    def read_user_again(self, id):
        """Read a user, and give the user's posts and comments the present names."""
        response = self.client.get(f"/users/{id}")
        if response.status_code == 404:
            self.users.pop(id, None)
            return
        self.users[id] = response.json
        for item in (*self.posts.values(), *self.comments.values()):
            if item["author"] and item["author"]["id"] == id:
                item["author"] = {name: response.json[name] for name in item["author"]}


def read_everything(client):
    listed = [post["id"] for page in follow_pages(client, "/posts?limit=100") for post in page]
    posts = {id: client.get(f"/posts/{id}").json for id in listed}
    comments = {
        comment["id"]: comment
        for id in posts
        for page in follow_pages(client, f"/posts/{id}/comments?limit=100")
        for comment in page
    }
    authored = (item for item in (*posts.values(), *comments.values()) if item["author"])
    authors = {item["author"]["id"] for item in authored}
    users = {id: client.get(f"/users/{id}").json for id in authors}
    return posts, comments, users


class Writers:
    """Members who write, edit and delete at random, and leave."""

    def __init__(self, app, random):
        self.app, self.random = app, random
        self.number = 0
        self.members = [self.join() for _ in range(4)]
        self.posts, self.comments, self.images = [], [], []  # with their authors

    def join(self):
        self.number += 1
        return testbed.sign_in(self.app, f"member-{self.number}")

    def write(self):
        act, weight = zip(*self.ACTS.items(), strict=True)
        [chosen] = self.random.choices(act, weight)
        chosen(self, self.random.choice(self.members))

    def text(self):
        return {"content": str(self.random.random())}

    def create_post(self, member):
        response = member.post("/posts", json={"title": "A title", **self.text()})
        self.posts.append((member, response.json["id"]))

    def comment(self, member):
        if self.posts:
            _, post = self.random.choice(self.posts)
            self.add(member, post, {})

    def reply(self, member):
        if self.comments:
            _, comment, post = self.random.choice(self.comments)
            self.add(member, post, {"parent_id": comment})

    def add(self, member, post, fields):
        response = member.post(f"/posts/{post}/comments", json=fields | self.text())
        if response.status_code == 201:
            self.comments.append((member, response.json["id"], post))
        else:  # the post or the comment was deleted
            assert response.status_code in {404, 422}

    def add_image(self, _):
        if self.posts:
            author, post = self.random.choice(self.posts)
            if author.get(f"/posts/{post}").status_code == 200 and author in self.members:
                self.images.append((author, author.add_image({"id": post})["id"]))

    def edit_post(self, _):
        self.change("patch", "/posts", self.posts, json=self.text())

    def edit_comment(self, _):
        self.change("patch", "/comments", self.comments, json=self.text())

    def describe_image(self, _):
        alt = str(self.random.random())
        self.change("patch", "/images", self.images, json={"alt": alt})

    def delete_post(self, _):
        self.change("delete", "/posts", self.posts)

    def delete_comment(self, _):
        self.change("delete", "/comments", self.comments)

    def delete_image(self, _):
        self.change("delete", "/images", self.images)

    def change(self, method, path, items, **arguments):
        if items:
            author, id, *_ = self.random.choice(items)
            response = getattr(author, method)(f"{path}/{id}", **arguments)
            assert response.status_code in {200, 204, 401, 404}, response.text

    def rename(self, member):
        self.number += 1
        name = self.random.choice(["username", "display_name"])
        response = member.patch("/users/me", json={name: f"renamed-{self.number}"})
        assert response.status_code == 200, response.text

    def leave(self, member):
        content = self.random.choice(["keep", "delete"])
        assert member.delete(f"/users/me?content={content}").status_code == 204
        self.members.remove(member)
        self.members.append(self.join())

    ACTS = {  # noqa: RUF012
        create_post: 12,
        comment: 20,
        reply: 25,
        add_image: 5,
        edit_post: 8,
        edit_comment: 8,
        describe_image: 4,
        delete_post: 3,
        delete_comment: 12,
        delete_image: 2,
        rename: 4,
        leave: 1,
    }


@pytest.mark.parametrize("seed", [1])
def test_a_copy_is_the_same_after_a_thousand_writes(app, anonymous, cached_codec, seed):
    random = Random(seed)
    writers = Writers(app, random)
    for _ in range(50):
        writers.write()
    copy = Copy(anonymous)
    count = 0
    for _ in range(WRITES):
        writers.write()
        if random.random() < 0.05:
            count += copy.follow()
    follow(anonymous, copy.cursor)  # which waits for transactions of others
    count += copy.follow()
    posts, comments, users = read_everything(anonymous)
    assert (copy.posts, copy.comments) == (posts, comments)
    assert users.keys() <= copy.users.keys()  # some authors have nothing left
    assert copy.users == {id: anonymous.get(f"/users/{id}").json for id in copy.users}
    assert count > WRITES / 2
    assert len(posts) > 10
    assert any(comment["deleted"] for comment in comments.values())
    assert any(post["author"] is None for post in posts.values())
    assert any(post["images"] for post in posts.values())
