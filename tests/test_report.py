"""The page in a real browser: no error, curves that respond, nothing wider than a phone. Chromium
and its driver come from the system.
"""

import ast
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from flexphase.report import files
from flexphase.report.files import DARK, LIGHT, picture
from flexphase.report.findings import Claim, Findings
from flexphase.report.page import Entry, embedded, page
from flexphase.report.panels import Panel, Series, points, star, table

X = np.linspace(0, 1e6, 60)
FINDINGS = Findings(
    [
        Panel(
            "A  over </script> steps",
            "updates",
            "NLL (nats)",
            [
                star(Series("CD-100", X, 350 * np.exp(-X / 3e5) + 110, np.full(60, 8.0), 0), 5e5),
                Series(
                    "ISD",
                    X,
                    340 * np.exp(-X / 5e5) + 120,
                    np.where(X > 9e5, np.nan, 12.0),
                    1,
                    at=4e5,
                ),
            ],
        ),
        Panel(
            "B",
            "b",
            "trace",
            [points("AoL", [0.2, 0.5, 0.8], [[3, 4], [1, 2], [5, 7]], colour=2)],
            logy=True,
            shade=[(0.3, 0.4)],
        ),
    ],
    [Claim("Fine <b>words</b>.", "1 & 2", "pass", "a test"), Claim("No.", "3", "fail", "a test")],
    ["A remark."],
)


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    data = folder / "fig.csv"
    data.write_text(table(FINDINGS.panels).to_csv(index=False))
    entry = Entry(
        "fig",
        "A title",
        FINDINGS,
        picture(FINDINGS, "svg", LIGHT),
        picture(FINDINGS, "svg", DARK),
        {"seeds": "0 to 9"},
        {"CSV": data},
        {"time": "1 s"},
    )
    path = folder / "report.html"
    path.write_text(
        page(
            "Test",
            "flexphase reproduce all",
            {"machine": "x" * 200},
            [entry, entry._replace(name="two")],
        )
    )
    return path


def test_the_page_needs_nothing_from_elsewhere(html):
    text = html.read_text()
    assert not re.findall(r"""(?:src|href|srcset)=["'](?!data:|#)[^"']*""", text)
    assert "http" not in text.replace("http-equiv", "")
    assert "<b>words</b>" not in text
    assert "Fine &lt;b&gt;words&lt;/b&gt;." in text


def test_the_report_does_not_know_the_experiments():
    """It draws what it is given; experiments import it, never the other way round."""
    imports = (ast.Import, ast.ImportFrom)
    for file in Path(files.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            assert not (isinstance(node, imports) and "experiments" in ast.unparse(node)), file.name


def test_no_string_ends_the_script():
    value = {"a": "</script><!--", "b": [1.5, None]}
    assert "<" not in embedded(value)
    assert json.loads(embedded(value)) == value


def test_table_holds_all_that_is_drawn():
    frame = table(FINDINGS.panels)
    assert len(frame) == 60 + 60 + 3
    aol = frame[frame.series == "AoL"]
    np.testing.assert_allclose(aol["mean"], [3.5, 1.5, 6])  # by hand
    np.testing.assert_allclose(aol["sd"], np.sqrt([0.5, 0.5, 2]))


def test_pictures_are_the_same_bytes_again():
    assert picture(FINDINGS, "svg", LIGHT) == picture(FINDINGS, "svg", LIGHT)
    assert picture(FINDINGS, "svg", LIGHT) != picture(FINDINGS, "svg", DARK)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip(
            "chromium and chromedriver are not installed (apt-get install chromium chromium-driver)"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    profile = f"--user-data-dir={tmp_path_factory.mktemp('profile')}"
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-dev-shm-usage",
        profile,
    ):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield driver
    driver.quit()


def opened(browser, html: Path, width: int = 1200, scheme: str = "light"):
    """The page at a width and in a colour scheme."""
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(html.as_uri())
    return browser


def view(browser, i: int = 0):
    return json.loads(
        browser.execute_script(f"return document.querySelectorAll('canvas')[{i}].dataset.view")
    )


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_error_and_nothing_sticks_out(browser, html, width, scheme):
    page = opened(browser, html, width, scheme)
    assert page.get_log("browser") == []
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert page.execute_script("return document.querySelectorAll('canvas').length") == 4
    size = page.execute_script("return getComputedStyle(document.body).fontSize")
    assert float(size[:-2]) >= 16
    dark = (
        page.execute_script("return getComputedStyle(document.body).backgroundColor")
        != "rgb(255, 255, 255)"
    )
    assert dark == (scheme == "dark")
    assert page.execute_script(
        "return document.images[0].complete && document.images[0].naturalWidth > 0"
    )
    inked = (
        "const c = document.querySelector('canvas'); return new "
        "Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    )
    assert page.execute_script(inked) > 20  # something is drawn


def test_curves_respond(browser, html):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    page = opened(browser, html)
    figure, canvas = (
        page.find_element(By.CSS_SELECTOR, "figure.curve"),
        page.find_element(By.TAG_NAME, "canvas"),
    )
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    whole = view(page)
    assert whole["x"][0] <= 0 and whole["x"][1] >= 1e6

    ActionChains(page).move_to_element_with_offset(
        canvas, -50, -50
    ).click_and_hold().move_by_offset(100, 80).release().perform()
    boxed = view(page)
    assert whole["x"][0] < boxed["x"][0] < boxed["x"][1] < whole["x"][1]
    assert whole["y"][0] < boxed["y"][0] < boxed["y"][1] < whole["y"][1]
    readout = figure.find_element(By.CLASS_NAME, "readout").text
    assert "CD-100" in readout and "±" in readout

    def button(words):
        next(
            b for b in figure.find_elements(By.TAG_NAME, "button") if b.text.strip() == words
        ).click()

    button("reset")
    assert view(page) == whole
    button("zoom in")
    narrow, wide = (np.ptp(v["x"]) for v in (view(page), whole))
    assert narrow == pytest.approx(0.6 * wide)
    button("log y")
    assert view(page)["y"][1] < 4  # decades
    button("ISD")
    assert canvas.get_attribute("data-shown") == "1"
    assert page.get_log("browser") == []
