"""Read the HTML of a page."""

from html.parser import HTMLParser

VOID = {"meta", "link", "img", "input", "br", "hr"}


class Reader(HTMLParser):
    """Checks that elements are closed in order, and collects elements and text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data.strip())

    def all(self, tag, **attributes):
        return [
            found
            for name, found in self.elements
            if name == tag and attributes.items() <= found.items()
        ]

    @property
    def text(self):
        return " ".join(filter(None, self.texts))


def path_of(post):
    return f"/p/{post['id']}"


def links(page):
    return [link["href"] for link in page.all("a")]
