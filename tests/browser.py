"""Opens pages in Chromium, without a window, where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--dump-dom",
]
# A frame as wide as a window tells how wide its contents are.
_SCRIPT = """<script>onload = () => {
  const seen = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument;
    return [
      page.title,
      page.documentElement.scrollWidth,
      page.querySelectorAll("svg.picture").length,
      [...page.images].filter(image => image.complete && !image.naturalWidth).length,
    ];
  });
  document.body.textContent = JSON.stringify(seen);
};</script>"""


class View(NamedTuple):
    """A page as a browser shows it: how wide its contents are, in pixels, and what is in it."""

    title: str
    width: int
    pictures: int
    broken_images: int


def look_at(pages: Sequence[tuple[Path, int]], folder: Path) -> list[View]:
    """Open pages, each in a window of the width given. The browser's files go into ``folder``."""
    frames = "".join(
        f'<iframe src="{page.as_uri()}" style="width: {width}px; height: 800px"></iframe>'
        for page, width in pages
    )
    opened = folder / "frames.html"
    style = "<style>iframe { border: 0; display: block }</style>"
    opened.write_text(f"{style}{frames}{_SCRIPT}", encoding="utf-8")
    assert CHROMIUM is not None
    ended = subprocess.run(
        [CHROMIUM, *_FLAGS, f"--user-data-dir={folder / 'profile'}", opened.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    seen = re.search(r"<body>(\[.*\])</body>", ended.stdout, re.S)
    assert seen is not None, ended.stdout
    return [View(*view) for view in json.loads(seen[1])]
