"""The pictures in the pages are Mermaid that its own renderer draws."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(shutil.which("npx") is None or CHROMIUM is None, reason="needs npx and Chromium on PATH")
def test_the_picture_of_the_architecture_renders(tmp_path: Path) -> None:
    browser = tmp_path / "browser.json"
    browser.write_text(json.dumps({"executablePath": CHROMIUM, "args": ["--no-sandbox"]}))
    page = tmp_path / "page.md"
    renderer = ["npx", "--yes", "@mermaid-js/mermaid-cli@11.17.0", "--puppeteerConfigFile", str(browser)]
    subprocess.run(
        [*renderer, "--input", str(ARCHITECTURE), "--output", str(page)],
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PUPPETEER_SKIP_DOWNLOAD": "1"},
        timeout=600,
    )

    assert "<svg" in (tmp_path / "page-1.svg").read_text(encoding="utf-8")
