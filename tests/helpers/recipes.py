"""The recipes of CONTRIBUTING.md for common changes."""

import re

from tests.helpers import ROOT

GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = dict(re.findall(r"^## (Add .*)\n((?:(?!## ).*\n)*)", GUIDE, re.MULTILINE))


def steps(recipe):
    """Return the file and the text of each step of a recipe."""
    found = re.findall(r"^\d+\. `(.*?)`: (.*(?:\n(?!\d+\. ).*)*)", RECIPES[recipe], re.MULTILINE)
    assert len(found) == len(re.findall(r"^\d+\. ", RECIPES[recipe], re.MULTILINE))
    return dict(found)


def code_blocks(text, language):
    """Return the blocks of code in a text."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [re.sub(f"^{indentation}", "", code, flags=re.MULTILINE) for indentation, code in found]
