"""The names and beginnings of files that are accepted, and of those that are refused."""

import pytest

from posting.files.formats import (
    FORMATS,
    MAX_NAME,
    FileError,
    check_file,
    clean_name,
    media_type_of,
)

ZIP = b"PK\x03\x04\x14\x00\x00\x00\x08\x00"
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
BEGINNINGS = {
    "pdf": [b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"],
    "txt": [b"A loom", "Ein Webstuhl für Grüße".encode(), "Grüße".encode("cp1252"), b"\x1b[1mA"],
    "csv": [b"a,b\r\n1,2\r\n", "\ufeffa;b\r\n".encode(), "a\tb".encode("utf-16")],
    **{each: [ZIP] for each in ("docx", "xlsx", "pptx", "odt", "ods", "odp")},
    **{each: [COMPOUND] for each in ("doc", "xls", "ppt")},
    "zip": [ZIP, b"PK\x05\x06" + bytes(18)],
    "gpx": [
        b'<?xml version="1.0"?>\n<gpx version="1.1">',
        b"\xef\xbb\xbf<gpx >",
        b"<?xml version='1.0'?><!-- a track --><gpx:gpx xmlns:gpx='x'>",
    ],
    "ics": [b"BEGIN:VCALENDAR\r\nVERSION:2.0", b"\xef\xbb\xbfbegin:vcalendar\n"],
    "mp3": [b"ID3\x04\x00", b"\xff\xfb\x90\x00", b"\xff\xf3\x18\xc4"],
    "ogg": [b"OggS\x00\x02"],
}
JPEG, HTML = b"\xff\xd8\xff\xe0\x00\x10JFIF", b"<!doctype html><script>alert(1)</script>"


def test_each_format_has_an_example():
    assert BEGINNINGS.keys() == FORMATS.keys()


@pytest.mark.parametrize(
    ("extension", "data"), [(each, data) for each, found in BEGINNINGS.items() for data in found]
)
def test_a_file_that_begins_as_its_name_says_is_taken(extension, data):
    check_file(f"a.{extension}", data)
    check_file(f"A b.{extension.upper()}", data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pdf", HTML),
        ("a.pdf", b"\n%PDF-1.7"),
        ("a.pdf", ZIP),
        ("a.txt", ZIP),
        ("a.txt", JPEG),
        ("a.csv", b"a,b\x00"),
        ("a.zip", JPEG + ZIP),
        ("a.docx", COMPOUND),
        ("a.doc", ZIP),
        ("a.gpx", b"<?xml version='1.0'?><svg>"),
        ("a.gpx", HTML),
        ("a.gpx", HTML + b"<gpx>"),
        ("a.gpx", b"<?xml version='1.0'?><!-- --><html><gpx>"),
        ("a.gpx", b"<!-- -->" * 400),
        ("a.ics", b"X-BEGIN:VCALENDAR"),
        ("a.mp3", JPEG),
        ("a.mp3", b"\xff\xff\xff\xff"),
        ("a.ogg", b"Ogg"),
        ("a.pdf", b""),
    ],
)
def test_other_files_are_refused(name, data):
    with pytest.raises(FileError, match=r"is empty|does not begin like"):
        check_file(name, data)


@pytest.mark.parametrize(
    "name",
    [
        "a.html",
        "a.svg",
        "a.js",
        "a.exe",
        "a.xml",
        "a.jpg",
        "a.pdf.html",
        "a.docm",
        "pdf",
        "",
        ".",
        "\u200d.pdf",
        "\u3164.pdf",
    ],
)
@pytest.mark.parametrize("data", [HTML, b"%PDF-1.7", ZIP])
def test_other_extensions_are_refused(name, data):
    with pytest.raises(FileError, match=r"end with the extension .* \.pdf, \.txt"):
        check_file(name, data)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("minutes.pdf", "minutes.pdf"),
        ("C:\\Documents\\minutes.pdf", "minutes.pdf"),
        ("../../etc/minutes.pdf", "minutes.pdf"),
        ("..minutes.pdf", "minutes.pdf"),
        (" a \t b\n.pdf ", "a b.pdf"),
        ("a\x00\r\nX: y.pdf", "a X: y.pdf"),
        ("gnp\u202efdp.pdf", "gnpfdp.pdf"),
        ("Gru\u0308\u00dfe.pdf", "Grüße.pdf"),
        ("نامه\u200cها.pdf", "نامه\u200cها.pdf"),
        ('"a"; filename=b.pdf', '"a"; filename=b.pdf'),
        ("x" * 200 + ".pdf", "x" * (MAX_NAME - 4) + ".pdf"),
        (". a.pdf", "a.pdf"),
        ("e\u200b\u0301.pdf", "\u00e9.pdf"),
        ("x" * 96 + " b.pdf", "x" * 96 + ".pdf"),
        ("x/" * 10_000 + "a.pdf", "a.pdf"),
        (".pdf", "pdf"),
        ("", ""),
    ],
)
def test_a_name_is_that_of_a_file(path, name):
    assert clean_name(path) == name
    assert clean_name(name) == name


def test_a_long_name_is_cut_before_it_is_normalized():
    """Marks that are out of order take quadratic time."""
    marks = "\u0301" * 50_000 + "\u0316" * 50_000
    assert len(clean_name(f"a{marks}.pdf")) == MAX_NAME


def test_a_file_of_a_later_version_is_a_download():
    assert media_type_of("a.epub") == "application/octet-stream"


def test_a_name_that_is_all_extension_is_short():
    assert len(clean_name("a." + "x" * 200)) <= 202
    with pytest.raises(FileError):
        check_file(clean_name("a." + "x" * 200), b"x")
