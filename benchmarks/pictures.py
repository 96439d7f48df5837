"""`python -m benchmarks.pictures`: the pictures of the page in README and docs, taken in Chromium.

Fits the default model on the embedded corpus, as README does, serves it, and asks it a document; then opens its test
part as a CSV file. Writes docs/page-light.png, page-dark.png and page-workspace.png.
"""

import csv
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.speed.page import browser, open_file, score, served, until
from mpad import MPADClassifier, load_dataset

_DOCUMENT = """Fit a smoothing spline through noisy points, then evaluate its derivative at the knots. \
It is not a Fourier series."""
_WIDTH, _HEIGHT, _TALL = 1280, 867, 1107


def main() -> None:
    """Fit, serve and take the pictures."""
    data, docs = load_dataset("docstrings"), results.HERE.parent / "docs"
    assert data.train.labels is not None and data.test.labels is not None
    with tempfile.TemporaryDirectory() as folder:
        model, test = Path(folder) / "docs-model", Path(folder) / "test.csv"
        MPADClassifier(random_state=0, verbose=False).fit(data.train.texts, data.train.labels).save(model)
        with test.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *zip(data.test.texts, data.test.labels, strict=True)])
        with served(model) as (address, _), browser() as driver:
            driver.get(address)
            driver.find_element("id", "text").send_keys(_DOCUMENT)
            driver.find_element("id", "go").click()
            until(driver, "document.querySelector('#panels svg .node') !== null")  # its frame comes first
            _take(driver, docs / "page-light.png", _HEIGHT)
            driver.find_element("id", "theme").click()
            _take(driver, docs / "page-dark.png", _HEIGHT)
            driver.find_element("id", "theme").click()
            driver.get(address)
            open_file(driver, test)
            score(driver)
            driver.execute_script("document.getElementById('said').scrollIntoView()")
            _take(driver, docs / "page-workspace.png", _TALL)


def _take(driver: Any, path: Path, height: int) -> None:
    """A picture of what a window of that height shows, once the graph has come to rest."""
    driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": _WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    driver.execute_async_script("setTimeout(arguments[0], 1500)")
    driver.save_screenshot(str(path))


if __name__ == "__main__":
    main()
