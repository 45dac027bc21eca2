"""The page in a real browser: headless Chromium, driven by selenium; skipped without them."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.config import ModelConfig
from headrace.live import Address, LiveServer, LiveView
from headrace.pipeline.mux import Muxer
from tests.live.test_server import FILES, SCENE
from tests.media.conftest import write_clip
from tests.media.sources import test_stream_rtsp as test_rtsp
from tests.memory import resident
from tests.pipeline import test_pipeline_dynamic as test_dynamic
from tests.pipeline.fakes import FakeSource

pytest.importorskip("selenium")
wait_until = partial(test_dynamic.wait_until, seconds=60)
DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (DRIVER and BROWSER), reason="no chromium with chromedriver"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    """The demo scene twice, one of them ending soon, and the address of its page."""
    folder: Path = tmp_path_factory.mktemp("page")
    for name in FILES:
        shutil.copy(SCENE / name, folder)
    (folder / "live.yml").write_text(
        f"sources:\n  - {{uri: {SCENE}/conveyor.mp4, name: belt, loop: true}}\n"
        f"  - {{uri: {SCENE}/conveyor.mp4, name: short}}\n"
        "models: config_infer_primary.txt\ntracker: iou\nsinks: [fake]\n"
    )
    view = LiveView()
    pipeline = headrace.open_pipeline(folder / "live.yml", outputs=[view])
    models = [ModelConfig.load(folder / "config_infer_primary.txt")]
    server = LiveServer(pipeline, view, Address(port=0), models)
    thread = threading.Thread(target=pipeline.run)
    thread.start()
    yield pipeline, server.address.url
    pipeline.stop()
    thread.join(20)
    server.close()


def pixels(browser: Any, selector: str) -> str:
    script = "return document.querySelector(arguments[0]).toDataURL()"
    return str(browser.execute_script(script, selector))


def texts(browser: Any, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
    return list(browser.execute_script(script, selector))


def test_watching(browser: Any, running: tuple[Any, str]) -> None:
    """Tiles move; an ended source says so; a click shows an object, or why there is none."""
    browser.get(running[1])
    wait_until(lambda: len(texts(browser, ".tile")) == 2)
    before = pixels(browser, ".tile canvas")
    wait_until(lambda: pixels(browser, ".tile canvas") != before)
    wait_until(lambda: "ended" in texts(browser, ".tile")[1])
    assert "running" in texts(browser, "#state")[0]
    browser.find_element("css selector", ".tile").click()
    wait_until(lambda: texts(browser, "#objects button"))
    browser.find_element("id", "hold").click()
    name = texts(browser, "#objects button")[0].split()[0]
    browser.find_element("css selector", "#objects button").click()
    assert texts(browser, "#chosen h3") == [name]
    assert "confidence" in texts(browser, "#chosen dl")[0]
    browser.execute_script(
        """const c = document.getElementById("image"), b = c.getBoundingClientRect();
        c.dispatchEvent(new MouseEvent("click",
          {clientX: b.left + b.width / 2, clientY: b.bottom - 3, bubbles: true}));"""
    )
    wait_until(lambda: "pre-cluster-threshold" in "".join(texts(browser, "#chosen pre")))
    browser.find_element("tag name", "body").send_keys("\ue00c")  # Escape
    assert browser.find_element("id", "one").get_attribute("hidden") is not None
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


def test_what_stays_is_not_put_in_again(browser: Any, running: tuple[Any, str]) -> None:
    """A screen reader would read it twice a second, and selected text would be lost."""
    browser.get(running[1])
    wait_until(lambda: "running" in texts(browser, "#state") and texts(browser, "#notices li"))
    browser.execute_script(
        """window.changes = [];
        for (const id of ["state", "notices"]) {
          new MutationObserver((all) => window.changes.push(...all.map((one) => id))).observe(
            document.getElementById(id), {childList: true, characterData: true, subtree: true});
        }"""
    )
    before, seen = texts(browser, "#figures"), texts(browser, "#notices li")
    wait_until(lambda: texts(browser, "#figures") != before)
    before = texts(browser, "#figures")
    wait_until(lambda: texts(browser, "#figures") != before)
    if texts(browser, "#notices li") == seen:  # no new one came meanwhile
        assert browser.execute_script("return window.changes") == []


def test_a_narrow_page(browser: Any, running: tuple[Any, str]) -> None:
    """Nothing is wider than the page, rows of tables are one line, what was chosen is in sight."""
    lines = """return [...document.querySelectorAll("#chosen .row")].map(
        (e) => e.clientHeight < 2 * parseFloat(getComputedStyle(e).fontSize))"""
    seen = """const b = document.getElementById("chosen").getBoundingClientRect();
        return b.top < innerHeight && b.bottom > 0
            && document.documentElement.scrollWidth <= innerWidth"""
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get(running[1])
        wait_until(lambda: texts(browser, ".tile"))
        browser.find_element("css selector", ".tile").click()
        wait_until(lambda: texts(browser, "#objects button"))
        browser.find_element("id", "hold").click()
        browser.execute_script(
            """scrollTo(0, document.body.scrollHeight);
            document.querySelector("#objects li:last-child button").click();"""
        )
        assert browser.execute_script(seen)
        browser.execute_script(
            """const c = document.getElementById("image"), b = c.getBoundingClientRect();
            c.dispatchEvent(new MouseEvent("click",
              {clientX: b.left + b.width / 2, clientY: b.bottom - 3, bubbles: true}));"""
        )
        wait_until(lambda: browser.execute_script(lines))
        assert all(browser.execute_script(lines))
        assert browser.execute_script(seen)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_full_screen(browser: Any, running: tuple[Any, str]) -> None:
    """The button shows the image alone on the whole screen; Escape leads back to the page."""
    element = "return document.fullscreenElement && document.fullscreenElement.tagName"
    browser.get(running[1])
    wait_until(lambda: texts(browser, ".tile"))
    browser.find_element("css selector", ".tile").click()
    wait_until(lambda: texts(browser, "#objects button"))
    browser.find_element("id", "full").click()
    wait_until(lambda: browser.execute_script(element) == "FIGURE")
    image, screen = browser.execute_script(
        """const b = document.getElementById("image").getBoundingClientRect();
        return [[b.width, b.height], [innerWidth, innerHeight]];"""
    )
    assert all(a <= b for a, b in zip(image, screen, strict=True))
    assert any(a > 0.9 * b for a, b in zip(image, screen, strict=True))
    assert image[0] / image[1] == pytest.approx(640 / 384, rel=0.01)
    before = pixels(browser, "#image")
    wait_until(lambda: pixels(browser, "#image") != before)
    browser.find_element("tag name", "body").send_keys("\ue00c")  # Escape
    wait_until(lambda: browser.execute_script(element) is None)
    assert browser.find_element("id", "one").get_attribute("hidden") is None


def test_more_sources_than_one_answer_holds(browser: Any, tmp_path: Path) -> None:
    """Videos that are over do not keep images of those that run away."""
    view = LiveView()
    pipeline = headrace.Pipeline([], lambda _: time.sleep(0.05), [view], keep_open=True)
    server = LiveServer(pipeline, view, Address(port=0))
    run = threading.Thread(target=pipeline.run)
    run.start()
    try:
        for i in range(70):
            pipeline.add_source(FakeSource(1, name=f"guest{i}"))
        wait_until(lambda: not pipeline.sources)
        pipeline.add_source(write_clip(tmp_path / "video.mp4", 1000))
        browser.get(server.address.url)
        wait_until(lambda: len(texts(browser, ".tile")) == 71)
        tile = ".tile[data-source='70'] canvas"
        before = pixels(browser, tile)
        wait_until(lambda: pixels(browser, tile) != before)
        assert "running" in texts(browser, "#state")[0]
    finally:
        pipeline.stop()
        run.join(20)
        server.close()


@pytest.mark.skipif(not test_rtsp.available(), reason="no RTSP server of GStreamer")
def test_a_source_that_is_killed_while_the_page_is_open(browser: Any) -> None:
    """Its tile and its facts say that it reconnects and why, then that it runs again."""
    camera = test_rtsp.Server()
    camera.start("--size", "320x192", "--fps", "10")
    view = LiveView()
    source = headrace.open_source(camera.url(), timeout_s=5, reconnect=test_rtsp.FAST)
    pipeline = headrace.Pipeline([source], lambda _: None, [view])
    server = LiveServer(pipeline, view, Address(port=0))
    run = threading.Thread(target=pipeline.run)
    run.start()

    def said(selector: str, *words: str) -> bool:
        text = " ".join(texts(browser, selector))
        return all(word in text for word in words)

    try:
        browser.get(server.address.url)
        wait_until(lambda: said(".tile .running", "fps"))
        before = pixels(browser, ".tile canvas")
        wait_until(lambda: pixels(browser, ".tile canvas") != before)
        camera.kill()
        wait_until(
            lambda: said(".tile .reconnecting", "reconnecting: ", "lost at frame", "last try")
        )
        spoken = browser.find_element("css selector", ".tile").get_attribute("aria-label")
        assert "reconnecting" in spoken
        assert said("#notices .warning", camera.url(), "not back yet")
        assert not said(".tile .what", "fps")
        before = pixels(browser, ".tile canvas")
        browser.find_element("css selector", ".tile").click()
        wait_until(lambda: said("#facts .reconnecting", "reconnecting: ", "lost at frame"))
        camera.start("--size", "320x192", "--fps", "10")
        wait_until(lambda: said("#facts .running", "running"))
        wait_until(lambda: said("#facts", "reconnected"))
        browser.find_element("id", "back").click()
        wait_until(lambda: said(".tile .running", "fps") and not texts(browser, ".reconnecting"))
        wait_until(lambda: pixels(browser, ".tile canvas") != before)
        wait_until(lambda: said("#notices .warning", "back after"))
    finally:
        pipeline.stop()
        run.join(20)
        server.close()
        camera.kill()


_DRAWN = """
window.drawn = [];
const heads = [], buffer = Response.prototype.arrayBuffer;
Response.prototype.arrayBuffer = async function () {
  const data = await buffer.call(this), length = new DataView(data).getUint32(0);
  heads.push(...JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length))));
  return data;
};
const draw = CanvasRenderingContext2D.prototype.drawImage;
CanvasRenderingContext2D.prototype.drawImage = function (...given) {
  draw.apply(this, given);
  const head = heads.shift();
  if (head) window.drawn.push([head.source, head.frame, Date.now() / 1000]);
};
"""


@pytest.mark.skipif(not test_rtsp.available(), reason="no RTSP server of GStreamer")
def test_latency_of_eight_sources(browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight live streams: from the decoder to the screen of this machine in 300 ms."""
    decoded: dict[tuple[int, int], float] = {}
    put = Muxer._put

    def noted(self: Muxer, feed: Any, frame: Any) -> None:
        decoded[feed.source.source_id, frame.frame] = time.time()
        put(self, feed, frame)

    monkeypatch.setattr(Muxer, "_put", noted)
    camera = test_rtsp.Server()
    camera.start("--size", "640x384", "--fps", "8")
    view = LiveView()
    pipeline = headrace.open_pipeline(
        SCENE / "config_infer_primary.txt", sources=[camera.url()] * 8, tracker="iou",
        outputs=[view], limit=80,
    )  # fmt: skip
    server = LiveServer(pipeline, view, Address(port=0))
    script = "Page.addScriptToEvaluateOnNewDocument"
    added = browser.execute_cdp_cmd(script, {"source": _DRAWN})
    try:
        browser.get(server.address.url)
        pipeline.run()
        drawn = browser.execute_script("return window.drawn")
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
        server.close()
        camera.kill()
    waits = sorted(at - decoded[source, frame] for source, frame, at in drawn if frame > 8)
    median, late = waits[len(waits) // 2], waits[int(len(waits) * 0.95)]
    print(f"{len(waits)} images: median {1000 * median:.0f} ms, 95 % {1000 * late:.0f} ms")
    assert {source for source, *_ in drawn} == set(range(8))
    if os.getloadavg()[0] < 1.5 * (os.cpu_count() or 1):  # a busy machine tells nothing
        assert median < 0.3


def test_a_hundred_reloads_leak_nothing(browser: Any, running: tuple[Any, str]) -> None:
    pipeline, url = running
    view: Any = pipeline.sinks[0]

    def reload(times: int) -> None:
        for _ in range(times):
            browser.get(url)
            wait_until(lambda: texts(browser, ".tile .name"))

    reload(10)
    before = resident()
    reload(100)
    wait_until(lambda: len(view._listeners) <= 1)
    assert resident() - before < 20 << 20
