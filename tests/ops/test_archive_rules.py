"""An import follows the rules of the API, unless an export of this service has written the row."""

import base64
import gzip
import json
from io import BytesIO

import pytest
import sqlalchemy as sa
from PIL import Image

from posting.accounts.models import User
from posting.db.transactions import transaction
from posting.files.formats import FORMATS
from posting.images import codec
from posting.posts.models import Post
from posting.site.models import ONLY, Site
from tests.conftest import PASSWORD
from tests.helpers import pictures
from tests.helpers.archives import (
    COMMENT,
    DATA,
    FILE,
    FILE_DATA,
    IMAGE,
    POST,
    REPLY,
    THUMBNAIL,
    USER,
    count_rows,
    delete_line,
    example_archive,
    export,
    import_,
    read_archive,
    run,
    set_counts,
    set_values,
    write_archive,
)

FUTURE, PAST = "2126-11-21T09:31:00.250Z", "2026-11-20T09:31:00.250Z"
IMAGE_ID, POST_ID = (example_archive()[number - 1]["row"]["id"] for number in (IMAGE, POST))
WRONG_FILE = f"line 10: file {example_archive()[FILE - 1]['row']['id']}"
EXTENSIONS = ", ".join(f".{extension}" for extension in FORMATS)
WRONG_NAME = f"The name must end with the extension of a file that is taken: {EXTENSIONS}."
REJECTED = f"line 11: image {IMAGE_ID}: Must be a PNG, JPEG, WebP or GIF image."
NO_HASH = (
    "line 2: users.password_hash must be empty, or scrypt:N:r:p$salt$hash as Posting writes it"
)


def insert_row(table, **values):
    """Return a function that adds the first row of a table."""

    def change(lines):
        tables = list(lines[0]["rows"])
        before = tables[: tables.index(table)]
        number = sum(line.get("table") in before for line in lines) + 1
        lines.insert(number, {"table": table, "row": values})
        lines[0]["rows"][table] += 1

    return change


def repeat_post(count, **values):
    def change(lines):
        rows = lines[POST - 1]["row"] | {
            "comment_count": 0,
            "image_count": 0,
            "file_count": 0,
            **values,
        }
        rows |= {"last_comment_at": None}
        new = [{"table": "posts", "row": rows | {"id": f"{n:021}"}} for n in range(count)]
        lines[POST:POST] = new
        lines[0]["rows"]["posts"] += count

    return change


def repeat_image(count):
    def change(lines):
        for number, table in ((THUMBNAIL, "thumbnails"), (DATA, "image_data"), (IMAGE, "images")):
            key = "id" if table == "images" else "image_id"
            row = lines[number - 1]["row"]
            new = [{"table": table, "row": row | {key: f"{n:021}"}} for n in range(count)]
            lines[number:number] = new
            lines[0]["rows"][table] += count
        lines[POST - 1]["row"]["image_count"] += count

    return change


def repeat_file(count):
    def change(lines):
        for number, table, key in ((FILE_DATA, "file_data", "file_id"), (FILE, "files", "id")):
            row = lines[number - 1]["row"]
            new = [{"table": table, "row": row | {key: f"{n:021}"}} for n in range(count)]
            lines[number:number] = new
            lines[0]["rows"][table] += count
        lines[POST - 1]["row"]["file_count"] += count

    return change


def insert_topics(*names, are_of_post=False):
    def change(lines):
        post = lines[POST - 1]["row"]
        post["has_topics"] = are_of_post
        times = {"created_at": post["created_at"], "last_activity_at": post["last_comment_at"]}
        for number, name in enumerate(names):
            topic = {"id": f"{number:021}", "name": name, "color": "red"}
            insert_row("topics", **topic, created_at=PAST, updated_at=PAST)(lines)
        for number in range(len(names) if are_of_post else 0):
            key = {"post_id": POST_ID, "topic_id": f"{number:021}"}
            insert_row("post_topics", **key, **times)(lines)

    return change


TOKEN = {
    "id": "t" * 21,
    "user_id": example_archive()[USER - 1]["row"]["id"],
    "token_hash": "h",
    "name": "A program",
    "scope": "read",
    "created_at": PAST,
    "expires_at": "2026-12-21T09:31:00.250Z",
    "last_used_at": None,
}
INVITATION = {
    "id": "i" * 21,
    "created_by_id": None,
    "secret_hash": "h",
    "note": None,
    "role": "member",
    "uses": 1,
    "uses_left": 1,
    "created_at": PAST,
    "expires_at": "2026-12-21T09:31:00.250Z",
}


def site_with(**pictures):
    """Return a function that adds the row of the site, with the files of its pictures."""
    empty = dict.fromkeys(Site.__table__.columns.keys())
    files = {
        name: value if name.endswith("_id") else base64.b64encode(value).decode()
        for name, value in pictures.items()
    }
    return insert_row("site", **empty | {"id": ONLY, "version": 1, "updated_at": PAST} | files)


LOGO = {"logo_id": "l" * 21, "logo": pictures.photo(), "small_logo": b"x"}
COVER = {"cover_id": "c" * 21, "cover": pictures.photo((1400, 900)), "small_cover": b"x"}
REFUSED = [
    (set_values(USER, username="admin"), "line 2: users.username: This name is reserved."),
    (
        set_values(USER, display_name="A\nB"),
        "line 2: users.display_name: Must not contain line breaks.",
    ),
    (set_values(USER, display_name="\u200b"), "line 2: users.display_name: Must not be blank."),
    (set_values(USER, application="\u200b"), "line 2: users.application: Must not be blank."),
    (set_values(USER, password_hash="secret"), NO_HASH + "."),
    (set_values(USER, password_hash="scrypt:32768:8:3$a"), NO_HASH + "."),
    (set_values(USER, password_hash="scrypt:32768:8:3$a$\u00e9"), NO_HASH + "."),
    (set_values(USER, password_hash="scrypt:1048576:8:3$a$b"), NO_HASH + "."),
    (set_values(USER, password_hash="$2b$12$" + "x" * 53), NO_HASH + "."),
    (set_values(USER, created_at=FUTURE), "line 2: users.created_at is in the future."),
    (set_values(USER, last_seen_at=PAST), "line 2: users.last_seen_at is before created_at."),
    (set_values(POST, title="\u200b"), "line 5: posts.title: Must not be blank."),
    (set_values(POST, title=""), "line 5: posts.title: Must have 1 to 200 characters."),
    (set_values(POST, title="A\r\nB"), "line 5: posts.title: Must not contain line breaks."),
    (set_values(POST, content=" "), "line 5: posts.content: Must not be blank."),
    (
        set_values(POST, content="🧵" * 100_001),
        "line 5: posts.content: Must have 1 to 100,000 characters.",
    ),
    (set_values(POST, created_at=FUTURE), "line 5: posts.created_at is in the future."),
    (set_values(POST, pinned_at=FUTURE), "line 5: posts.pinned_at is in the future."),
    (set_values(POST, updated_at=PAST), "line 5: posts.updated_at is before created_at."),
    (set_values(COMMENT, content="\n"), "line 6: comments.content: Must not be blank."),
    (
        set_values(COMMENT, content="x" * 10_001),
        "line 6: comments.content: Must have 1 to 10,000 characters.",
    ),
    (
        set_values(COMMENT, created_at=PAST, thread_at=PAST),
        "line 6: comments.created_at is before that of the post.",
    ),
    (set_values(FILE, created_at=PAST), "line 8: files.created_at is before that of the post."),
    (set_values(FILE, name="a.html"), f"{WRONG_FILE}: {WRONG_NAME}"),
    (
        set_values(FILE, name="../a.txt"),
        f"{WRONG_FILE}: The name must be one of a file, without invisible characters.",
    ),
    (
        set_values(FILE_DATA, data=base64.b64encode(b"PK\x03\x04\x00").decode()),
        f"{WRONG_FILE}: The file does not begin like a .txt file.",
    ),
    (
        site_with(**LOGO | {"logo": b"x"}),
        "line 2: the logo: Must be a PNG, JPEG, WebP or GIF image.",
    ),
    (
        site_with(**COVER | {"cover": b"x"}),
        "line 2: the cover: Must be a PNG, JPEG, WebP or GIF image.",
    ),
    (set_values(IMAGE, created_at=PAST), "line 9: images.created_at is before that of the post."),
    (set_values(IMAGE, alt="x" * 501), "line 9: images.alt must have at most 500 characters."),
    *(
        (
            set_values(number, version=version),
            f"line {number}: {table}.version must be from 1 to 1,000,000,000.",
        )
        for number, table in ((POST, "posts"), (COMMENT, "comments"))
        for version in (-5, 0, 1_000_000_001, 2**31 - 1)
    ),
    (
        insert_row("rate_windows", key="k" * 32, hits=2**31 - 1, ends_at=FUTURE),
        "line 2: rate_windows.hits must be from 0 to 1,000,000,000.",
    ),
    (set_values(DATA, data=base64.b64encode(b"<script>").decode()), REJECTED),
    (set_values(DATA, data=""), REJECTED),
    (insert_row("tokens", **TOKEN | {"name": "\t"}), "line 6: tokens.name: Must not be blank."),
    (
        insert_row("tokens", **TOKEN | {"expires_at": FUTURE}),
        "line 6: tokens.expires_at is too far in the future.",
    ),
    (
        insert_row("invitations", **INVITATION | {"note": "A\nB"}),
        "line 5: invitations.note: Must not contain line breaks.",
    ),
    (
        insert_row("invitations", **INVITATION | {"expires_at": FUTURE}),
        "line 5: invitations.expires_at is too far in the future.",
    ),
]


@pytest.mark.parametrize(("change", "expected"), REFUSED, ids=[text[:60] for _, text in REFUSED])
def test_what_the_api_refuses_is_not_imported(app, lines, tmp_path, change, expected):
    change(lines)
    path = write_archive(tmp_path / "1.gz", *lines)
    result = app.test_cli_runner().invoke(args=["import", str(path)])
    assert result.exit_code == 1
    assert f"Error: {path}, {expected}\n" in result.stderr
    assert not any(count_rows(app).values())


def test_the_pictures_of_the_site_are_made_again(app, lines, tmp_path):
    site_with(**LOGO, **COVER)(lines)
    assert run(app, "import", write_archive(tmp_path / "1.gz", *lines))[0] == 0
    client = app.test_client()
    site = client.get("/site").json
    for url, sizes in (
        (site["logo_url"], {"": (256, 256), "/64": (64, 64)}),
        (site["cover_url"], {"": (1280, 426), "/768": (768, 256)}),
    ):
        for end, size in sizes.items():
            picture = Image.open(BytesIO(client.get(url + end).data))
            assert (picture.format, picture.size) == ("WEBP", size)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (repeat_image(10), f"post {POST_ID} has more than 10 images"),
        (repeat_file(5), f"post {POST_ID} has more than 5 files"),
        (
            repeat_post(6, pinned_at=FUTURE.replace("2126", "2026")),
            "is pinned, and 5 later ones are",
        ),
        (insert_topics(*"abcd", are_of_post=True), f"post {POST_ID} has more than 3 topics"),
        (insert_topics(*(f"Topic {n}" for n in range(31))), "there are 30 topics beside 0"),
        (insert_topics("Looms", "looms"), f"topic {1:021} has the name of another one"),
    ],
)
def test_limits_of_the_api_hold_for_archives(app, lines, tmp_path, change, expected):
    change(lines)
    code, output = run(app, "import", write_archive(tmp_path / "1.gz", *lines))
    assert (code, expected in output) == (1, True), output
    assert not any(count_rows(app).values())


def test_the_problems_of_several_lines_are_listed_together(app, lines, tmp_path):
    for change in (
        repeat_post(30, title="\n"),
        set_values(USER, username="root", display_name="\n"),
    ):
        change(lines)
    path = write_archive(tmp_path / "1.gz", *lines)
    result = app.test_cli_runner().invoke(args=["import", str(path)])
    errors = [line for line in result.stderr.splitlines() if "mporting" not in line]
    assert errors[0] == f"Error: {path}, line 2: users.username: This name is reserved."
    assert errors[1].startswith(f"{path}, line 2: users.display_name: ")
    assert errors[2].startswith(f"{path}, line 6: posts.title: ")
    assert (len(errors), errors[-1]) == (21, "And 12 more problems.")


def test_texts_that_are_too_long_are_listed_with_the_problems_of_other_lines(app, lines, tmp_path):
    for change in (
        set_values(IMAGE, alt="x" * 501),
        set_values(REPLY, content="\n"),
        set_values(COMMENT, content="x" * 10_001),
        repeat_post(2, title="x" * 201),
        set_values(POST, title="x" * 201, content="x" * 100_001),
        set_values(USER, username="ab", display_name="x" * 65),
    ):
        change(lines)
    path = write_archive(tmp_path / "1.gz", *lines)
    result = app.test_cli_runner().invoke(args=["import", str(path)])
    errors = [line for line in result.stderr.splitlines() if "mporting" not in line]
    assert [error.partition(", line ")[2] for error in errors] == [
        "2: users.username must be a valid username.",
        "2: users.display_name must have at most 64 characters.",
        "5: posts.title must have at most 200 characters.",
        "6: posts.title must have at most 200 characters.",
        "7: posts.title must have at most 200 characters.",
        "8: comments.content: Must have 1 to 10,000 characters.",
        "9: comments.content: Must not be blank.",
        "11: images.alt must have at most 500 characters.",
    ]
    assert not any(count_rows(app).values())


@pytest.fixture
def exported(app, alice, tmp_path):
    """An archive of rows that former rules, or a wrong clock, have let in."""
    alice.add_image(alice.create_post("A title"))
    with app.app_context(), transaction() as connection:
        connection.execute(sa.update(User).values(display_name="A\nB"))
        connection.execute(sa.update(Post).values(created_at=Post.created_at, title="\u200b"))
    path = tmp_path / "exported.gz"
    export(app, path)
    return path


def test_an_export_is_imported_as_it_is_and_without_decoding(
    exported, empty_app, tmp_path, monkeypatch
):
    for name in ("reencode", "make_renditions"):
        monkeypatch.setattr(codec, name, None)
    import_(empty_app, exported)
    assert export(empty_app, tmp_path / "again.gz") == exported.read_bytes()


def test_rows_of_another_program_are_not_trusted(exported, empty_app, tmp_path):
    """Even if they are those of an export, without its checksums."""
    code, output = run(
        empty_app, "import", write_archive(tmp_path / "1.gz", *read_archive(exported))
    )
    assert code == 1
    assert "posts.title: Must not be blank." in output


def test_a_line_that_was_changed_is_not_trusted(app, alice, empty_app, tmp_path):
    alice.create_post("A title")
    export(app, tmp_path / "1.gz")
    text = gzip.decompress((tmp_path / "1.gz").read_bytes())
    (tmp_path / "2.gz").write_bytes(gzip.compress(text.replace(b"A title", b" ")))
    code, output = run(empty_app, "import", tmp_path / "2.gz")
    assert (code, "posts.title: Must not be blank." in output) == (1, True)
    (tmp_path / "3.gz").write_bytes(gzip.compress(text.replace(b"A title", b"Another title")))
    import_(empty_app, tmp_path / "3.gz")
    assert empty_app.test_client().get("/posts").json[0]["title"] == "Another title"


def import_picture(app, lines, path, data, **values):
    """Import the example with another picture, and return the output and the image."""
    set_values(DATA, data=base64.b64encode(data).decode())(lines)
    set_values(IMAGE, **values)(lines)
    result = app.test_cli_runner().invoke(args=["import", str(write_archive(path, *lines))])
    assert result.exit_code == 0, result.output
    client = app.test_client()
    image = client.get(f"/images/{IMAGE_ID}/metadata").json
    return result.stdout, image, client.get(f"/images/{IMAGE_ID}").data


def test_pictures_are_encoded_again_without_metadata(app, lines, tmp_path):
    photo = pictures.encoded(pictures.scene(), "JPEG", exif=pictures.exif(orientation=6))
    assert b"Exif" in photo
    output, image, data = import_picture(app, lines, tmp_path / "1.gz", photo)
    assert f"Image {IMAGE_ID}: encoded again, without metadata.\n" in output
    assert f"Image {IMAGE_ID}: its type is image/jpeg and not image/png.\n" in output
    assert b"Exif" not in data
    assert (image["media_type"], image["size"]) == ("image/jpeg", len(data))
    assert (image["width"], image["height"]) == (32, 48)  # upright
    thumbnail = app.test_client().get(f"/images/{IMAGE_ID}/thumbnail").data
    assert Image.open(BytesIO(thumbnail)).size == (32, 48)


def test_a_picture_without_a_thumbnail_gets_one(app, lines, tmp_path):
    delete_line(THUMBNAIL)(lines)
    set_counts(thumbnails=0)(lines)
    _, image, data = import_picture(app, lines, tmp_path / "1.gz", pictures.png())
    assert (image["width"], image["height"], image["size"]) == (48, 32, len(data))
    assert count_rows(app)["thumbnails"] == 1


def test_text_after_a_picture_is_cut_off(app, lines, tmp_path):
    output, _, data = import_picture(
        app, lines, tmp_path / "1.gz", pictures.png() + b"<script>", media_type="image/png"
    )
    assert "encoded again" in output
    assert b"<script>" not in data


@pytest.mark.parametrize("table", ["images", "thumbnails"])
def test_a_part_of_a_picture_that_was_changed_is_corrected(app, alice, empty_app, tmp_path, table):
    image = alice.add_image(alice.create_post("A title"))
    export(app, tmp_path / "1.gz")
    *lines, _ = gzip.decompress((tmp_path / "1.gz").read_bytes()).split(b"\n")
    found = [number for number, line in enumerate(lines) if f'"{table}","row"'.encode() in line]
    changed = json.loads(lines[found[0]])
    changed["row"] |= {"width": 7, "height": 9}
    if table == "images":
        changed["row"]["media_type"] = "image/gif"
    else:
        changed["row"]["data"] = base64.b64encode(b"<script>").decode()
    lines[found[0]] = json.dumps(changed).encode()
    (tmp_path / "2.gz").write_bytes(gzip.compress(b"\n".join([*lines, b""])))
    import_(empty_app, tmp_path / "2.gz")
    path = f"/images/{image['id']}"
    client = empty_app.test_client()
    for url in (f"{path}/metadata", path, f"{path}/thumbnail"):
        before, after = alice.get(url), client.get(url)
        assert (before.data, before.content_type) == (after.data, after.content_type)


def test_a_member_without_a_password_can_choose_one(app, lines, tmp_path):
    set_values(USER, password_hash="")(lines)
    import_(app, write_archive(tmp_path / "1.gz", *lines))
    client = app.test_client()
    for password in ("", PASSWORD):
        credentials = {"username": "ada", "password": password}
        assert client.post("/signin", json=credentials).status_code == 401
    code = run(app, "users", "reset-link", "ada")[1].partition("#")[2]
    new = {"code": code, "password": PASSWORD}
    assert client.post("/password-resets", json=new).status_code < 300
    assert client.post("/signin", json=credentials).status_code == 200
