"""The style guide, which is only there while the service is developed."""

import re

from posting.web.system import FOLDER
from tests.helpers.pages import Reader

TEMPLATES = FOLDER.parent / "templates" / "pages"


def test_it_is_shown_to_developers_alone(make_app, anonymous):
    assert anonymous.get("/styleguide").status_code == 404
    response = make_app(DEBUG=True).test_client().get("/styleguide")
    assert response.status_code == 200
    page = Reader(response.text)
    assert "What should become of our bread oven?" in page.text
    assert "I have a door that fits." in page.text


def test_it_shows_all_icons_and_colors():
    guide = (TEMPLATES / "styleguide.html").read_text()
    for name in re.findall('id="icon-([a-z]+)"', (TEMPLATES / "icons.html").read_text()):
        assert f'"{name}"' in guide, name
    properties = (FOLDER / "pages.css").read_text().partition("}")[0]
    for name in re.findall("--([a-z-]+): (?:#|color-mix)", properties):
        assert f'"{name}"' in guide or name == "on-accent", name
