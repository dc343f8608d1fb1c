"""A real browser for the tests of pages: Chromium without a window. It and its driver come from the
system.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest


def chromium(profile: Path) -> Any:
    """A browser with an empty profile; skips the test where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not binary or not driver:
        pytest.skip(
            "chromium and chromedriver are not installed (apt-get install chromium chromium-driver)"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-dev-shm-usage",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def opened(browser: Any, html: Path, width: int = 1200, **media: str) -> Any:
    """The page at a width, with media features such as prefers_color_scheme="dark"."""
    features = {"prefers-color-scheme": "light"} | {
        name.replace("_", "-"): value for name, value in media.items()
    }
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": name, "value": value} for name, value in features.items()]},
    )
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(html.as_uri())
    return browser


def serious_violations(page: Any) -> dict[str, list[str]]:
    """What axe-core (tests/vendor) calls serious or critical: the rule and where it is broken."""
    axe = Path(__file__).parent / "vendor" / "axe.min.js"
    page.execute_script(axe.read_text("utf-8"))
    found = page.execute_async_script(
        "const done = arguments[0]; axe.run().then((r) => done(r.violations))"
    )
    return {
        violation["id"]: [str(node["target"]) for node in violation["nodes"]]
        for violation in found
        if violation["impact"] in ("serious", "critical")
    }
