"""The page in a real browser (headless Chromium, where there is one): nothing scrolls sideways on a phone."""

from __future__ import annotations

import html as escaping
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.report import html

from . import made_up
from .test_html import verdict

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=3000",
         "--dump-dom")  # fmt: skip
MEASURE = """<script>onload = () => {{ const d = document.querySelector("iframe").contentDocument;
d.querySelectorAll("details").forEach(x => x.open = true);
const wide = [...d.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > {width} + 0.5)
  .map(e => e.tagName + "." + (e.getAttribute("class") || "")).slice(0, 5);
const out = document.createElement("pre"); out.id = "out";
const labels = [...d.querySelectorAll(".plot .row .label")].map(e => e.getBoundingClientRect().width).filter(w => w > 0);
out.textContent = d.documentElement.scrollWidth + " " + d.documentElement.scrollHeight + " "
  + [...wide, "labels " + Math.floor(Math.min(...labels))].join(",");
document.body.append(out); }};</script>"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")


def look(page: str, width: int, folder: Path) -> tuple[int, int, str]:
    """Width and height of a page's contents at a window ``width`` wide, and what sticks out to the right."""
    frame = f'<iframe srcdoc="{escaping.escape(page)}" style="width:{width}px;height:800px;border:0"></iframe>'
    file = folder / "frame.html"
    file.write_text(f"<!doctype html><body style='margin:0'>{frame}{MEASURE.format(width=width)}")
    done = subprocess.run([str(BROWSER), *FLAGS, f"--user-data-dir={folder / 'profile'}", f"file://{file}"],
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    found = re.search(r'<pre id="out">(\d+) (\d+) ([^<]*)</pre>', done.stdout)
    assert found, done.stdout[-500:] + done.stderr[-500:]
    return int(found[1]), int(found[2]), found[3]


@pytest.mark.parametrize("width", [375, 1280])
def test_nothing_scrolls_sideways(width: int, tmp_path: Path) -> None:
    long = "x" * 300
    items = [made_up.faster(), verdict(detail=long), made_up.refused(), made_up.even(), made_up.faster(task=long)]
    wide, high, beyond = look(html.render(items), width, tmp_path)
    assert high > 3000, "the page was laid out"
    assert wide <= width, f"the page is {wide} pixels wide at {width}: {beyond}"


@pytest.mark.parametrize("width", [375, 1280])
def test_marks_leave_room_for_names(width: int, tmp_path: Path) -> None:
    wide, _, said = look(html.render([made_up.noisy()]), width, tmp_path)
    assert wide <= width, said
    assert int(said.rpartition("labels ")[2]) >= 120, said


def test_the_test_sees_what_sticks_out(tmp_path: Path) -> None:
    page = html.render([made_up.even()]).replace("<main>", '<main><div style="width:600px">wide</div>')
    assert look(page, 375, tmp_path)[0] > 375
