"""The page in a real browser: no error, charts that respond, nothing wider than a phone."""

import ast
import errno
import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from browsing import chromium, opened, serious_violations

from flexphase.report import files, vendor
from flexphase.report.files import DARK, LIGHT, picture, recorded
from flexphase.report.findings import Claim, Findings
from flexphase.report.page import Entry, embedded, page
from flexphase.report.panels import Panel, Series, points, star, table
from flexphase.report.vendor import uplot_script
from flexphase.sweep import RunFolder

PICTURES = ("PNG", "SVG", "PDF")
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
        Panel("C", "", "", [], samples=np.eye(16).reshape(2, 8, 16)),
    ],
    [Claim("Fine <b>words</b>.", "1 & 2", "pass", "a test"), Claim("No.", "3", "fail", "a test")],
    ["A remark."],
)


def test_the_report_does_not_know_the_experiments():
    """It draws what it is given; experiments import it, never the other way round."""
    imports = (ast.Import, ast.ImportFrom)
    for file in Path(files.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            assert not (isinstance(node, imports) and "experiments" in ast.unparse(node)), file.name


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
        {"CSV": data, "netCDF": data} | {k: folder / f"fig.{k.lower()}" for k in PICTURES},
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
    elsewhere = re.findall(r"""(?:src|href|srcset)=["'](?!data:|#)([^"']*)""", text)
    assert not elsewhere
    theirs = uplot_script()
    assert "http" not in text.replace("http-equiv", "").replace(theirs, "")
    assert re.findall(r"https?:[^ ]*", theirs) == ["https://github.com/leeoniya/uPlot"]
    assert "<b>words</b>" not in text
    assert "Fine &lt;b&gt;words&lt;/b&gt;." in text


def test_the_charting_library_is_what_npm_delivers():
    """SHA-256 of dist/ and LICENSE of uplot@1.6.32 (`npm pack uplot@1.6.32`)."""
    kept = Path(vendor.__file__).parent.glob("*uPlot*")
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in kept} == {
        "LICENSE.uPlot": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
        "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    }


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


def test_what_was_recorded_is_written_by_us_and_not_by_hdf5(tmp_path, monkeypatch):
    """HDF5 ends the process where a disk is full; and it does not wait for the disk."""

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    data = {
        name: xr.Dataset({"nll": ("record", np.arange(3.0) + i), "params.W": 1.0})
        for i, name in enumerate(("bars", "mnist"))
    }
    folder = RunFolder(tmp_path, {})
    with xr.open_dataset(
        recorded("fig", FINDINGS, data, folder), engine="h5netcdf", group="mnist"
    ) as kept:
        assert list(kept) == ["nll"] and kept["nll"].values.tolist() == [1, 2, 3]
        assert json.loads(kept.attrs["claims"])[1]["words"] == "No."
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        recorded("none", FINDINGS, {}, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["fig.nc"]


def test_pictures_are_the_same_bytes_again():
    assert picture(FINDINGS, "svg", LIGHT) == picture(FINDINGS, "svg", LIGHT)
    assert picture(FINDINGS, "svg", LIGHT) != picture(FINDINGS, "svg", DARK)


def test_what_was_found_comes_first(html):
    text = html.read_text().split("<main>")[1]
    places = [text.index(words) for words in ("What was found", "Fine &lt;b&gt;", 'class="live"')]
    assert places == sorted(places)
    assert text.count("Fine &lt;b&gt;words&lt;/b&gt;.") == 2  # once for each of two figures
    assert '<span class="pass">2 pass</span>, <span class="fail">2 fail</span>' in text


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = chromium(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


def view(figure):
    return json.loads(figure.get_attribute("data-view"))


def is_shown(page, selector):
    return [element.is_displayed() for element in page.find_elements("css selector", selector)]


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_error_and_nothing_sticks_out(browser, html, width, scheme):
    page = opened(browser, html, width, prefers_color_scheme=scheme)
    assert page.get_log("browser") == []
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    size = page.execute_script("return getComputedStyle(document.body).fontSize")
    assert float(size[:-2]) >= 16
    ground = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (ground != "rgb(255, 255, 255)") == (scheme == "dark")
    inked = """
        return [...document.querySelectorAll("canvas")].map((c) => {
          const data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
          return new Set(new Uint32Array(data.buffer)).size;
        });
    """
    colours = page.execute_script(inked)
    assert len(colours) == 4 and min(colours) > 20  # something is drawn


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(browser, html, width, scheme):
    page = opened(browser, html, width, prefers_color_scheme=scheme)
    assert serious_violations(page) == {}


def test_each_figure_is_shown_once(browser, html):
    """As charts on a screen; as a picture, and a light one, on paper and without JavaScript."""
    page = opened(browser, html, prefers_color_scheme="dark")
    assert is_shown(page, ".static") == [False, False]
    assert is_shown(page, "figure.curve") == [True] * 4
    assert is_shown(page, "figure.pictures") == [True] * 2  # samples
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert is_shown(page, ".static") == [True, True]
    assert not any(is_shown(page, "figure"))
    chosen = "return document.querySelector('.static img').currentSrc === arguments[0].src"
    assert page.execute_script(chosen, page.find_element("css selector", ".static img"))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    page.get(html.as_uri())
    assert is_shown(page, ".static") == [True, True]
    assert not any(is_shown(page, "figure"))
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_downloads_travel_inside_the_page(browser, html):
    """The figure's own is made by the script; without, the link leads to it."""
    assert html.read_text().count(' data-file="fig') == 2
    page = opened(browser, html)
    links = page.find_elements("css selector", "a[download]")
    assert [link.get_attribute("href").split(";")[0] for link in links] == [
        "data:text/csv",
        "data:application/x-netcdf",
        "data:image/svg+xml",
    ] * 2
    assert "beside this page: fig.png, fig.pdf" in page.find_element("class name", "downloads").text


def test_charts_respond(browser, html):
    from selenium.webdriver import ActionChains

    page = opened(browser, html)
    figure = page.find_element("css selector", "figure.curve")
    over = figure.find_element("css selector", ".u-over")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
    whole = view(figure)
    assert whole["x"][0] <= 0 and whole["x"][1] >= 1e6

    ActionChains(page).move_to_element_with_offset(over, -50, -50).click_and_hold().move_by_offset(
        100, 80
    ).release().perform()
    boxed = view(figure)
    assert whole["x"][0] < boxed["x"][0] < boxed["x"][1] < whole["x"][1]
    assert whole["y"][0] < boxed["y"][0] < boxed["y"][1] < whole["y"][1]
    readout = figure.find_element("class name", "readout").text
    assert "CD-100" in readout and "±" in readout

    def button(words):
        next(b for b in figure.find_elements("tag name", "button") if b.text == words).click()

    button("reset")
    assert view(figure) == whole
    button("zoom in")
    assert np.ptp(view(figure)["x"]) == pytest.approx(0.6 * np.ptp(whole["x"]))
    button("log y")
    low, high = view(figure)["y"]
    assert 100 <= low < high <= 1000
    button("ISD")
    assert figure.get_attribute("data-shown") == "1"
    assert page.get_log("browser") == []
