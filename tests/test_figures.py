"""Each figure is drawn by the script of the same name beside it, and shown with words."""

import re
import runpy
from pathlib import Path

import pytest

from attnbook.picture import check, to_svg

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "figures").glob("[0-9][0-9]_*.py"))


def test_there_are_figures_and_each_has_its_script():
    assert SCRIPTS
    assert {p.stem for p in SCRIPTS} == {p.stem for p in (ROOT / "figures").glob("*.svg")}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_committed_figure_is_what_the_script_draws(script):
    picture = runpy.run_path(str(script))["picture"]()
    assert check(picture) == []
    assert script.with_suffix(".svg").read_text(encoding="utf-8") == to_svg(picture), (
        "the figure is out of date: run `python figures`"
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_each_figure_is_shown_in_its_chapter_with_a_description(script):
    (chapter,) = (ROOT / "notebooks").glob(f"{script.stem[:3]}*.ipynb")
    shown = re.findall(
        rf"!\[([^\]]*)\]\(../figures/{script.stem}\.svg\)", chapter.read_text(encoding="utf-8")
    )
    assert [len(words) >= 60 for words in shown] == [True]
