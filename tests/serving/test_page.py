"""The page in a real browser with the real server and models that write capitals."""

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from playwright.sync_api import Browser, Locator, Page, Route, expect, sync_playwright

from seq2seq_memattn.serving.export.options import ExportOptions
from seq2seq_memattn.serving.export.saved_model import export
from seq2seq_memattn.serving.http.app import make_app
from seq2seq_memattn.serving.http.connections import Connection
from seq2seq_memattn.serving.models.loaded_model import LoadedModel
from seq2seq_memattn.serving.options import ServerOptions
from seq2seq_memattn.serving.service import Service
from tests.serving.capitals import export_capitals
from tests.texts import make_text_data, sentences
from tests.training.runs import text_run

pytestmark = pytest.mark.slow

expect.set_options(timeout=30_000)  # milliseconds

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SENTENCE = "a dog runs fast"
TOKEN = "open sésame"
MAX_TEXT_BYTES = 9_000
REFUSED = "Failed to load resource"  # the browser's message for status 400 and above
SCRIPT = "<script>window.wasRun = true</script>"


@contextmanager
def serving(folders: dict[str, Path], token: str | None = None) -> Iterator[str]:
    """Serves models on a free port for a block; yields the address of the page."""
    options = ServerOptions(max_text_bytes=MAX_TEXT_BYTES, max_body_bytes=1_000_000)
    service = Service(folders, options)
    app = make_app(service, options, options.host, token)
    config = uvicorn.Config(
        app, port=0, http=Connection, ws="none", lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()
        service.close()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        "k8": export_capitals(root / "k8"),
        "bahdanau": export_capitals(root / "bahdanau", has_slots=False),
        "plain": export_capitals(
            root / "plain", has_align=False, kind="symbols", source_language="", example="1 2 3"
        ),
    }


@pytest.fixture(scope="module")
def text_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Exports of runs on subwords after two updates, one with slots and one without."""
    root = tmp_path_factory.mktemp("text")
    data_dir = make_text_data(root, 60)
    options = ExportOptions(beam_size=3, n_best=2, max_source_length=20)
    for name, attention in (("slots", "k_memory:3"), ("bahdanau", "bahdanau")):
        run = text_run(data_dir, root / f"{name}_run", attention=attention)
        export(run, root / name, options, "float32", sentences(1, seed=4)[0])
    return {name: root / name for name in ("slots", "bahdanau")}


@pytest.fixture(scope="module")
def address(models: dict[str, Path]) -> Iterator[str]:
    with serving(models) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = [os.environ.get("CHROMIUM", ""), *BROWSERS]
    path = next(filter(None, (shutil.which(name) for name in names if name)), None)
    if path is None:
        pytest.fail(
            f"no browser: none of {', '.join(BROWSERS)} is on the path, and the environment's "
            "CHROMIUM names none; `apt-get install chromium` installs one",
            pytrace=False,
        )
    with sync_playwright() as playwright:
        # The sandbox refuses to run as root in a container, so it is switched off.
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def opened(
    browser: Browser, address: str, expects_refusal: bool = False, **options: Any
) -> Iterator[Page]:
    """A new page; afterwards, asserts that it sent no request elsewhere and logged no error."""
    context = browser.new_context(**options)
    page = context.new_page()
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: line.type == "error" and errors.append(line.text))
    page.goto(address)
    yield page
    context.close()
    assert [url for url in asked if not url.startswith(address)] == []
    assert [line for line in errors if not (expects_refusal and REFUSED in line)] == []


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with opened(browser, address) as found:
        yield found


def translate(page: Page, text: str = SENTENCE) -> None:
    """Translates a text, and waits for the answer."""
    page.get_by_label(re.compile("^(Text|Symbols)")).fill(text)
    page.get_by_role("button", name="Translate").click()
    expect(page.locator("#status")).to_contain_text("Translated in")


def best(page: Page) -> Locator:
    return page.locator("#best li")


def pieces(page: Page, side: str) -> Locator:
    return page.locator(f"#{side}-pieces").get_by_role("option")


def shares(page: Page, side: str) -> list[float]:
    """The strength of the highlight of each piece of a side."""
    script = "all => all.map(one => Number(one.style.getPropertyValue('--share')))"
    return pieces(page, side).evaluate_all(script)


def colours(page: Page) -> list[list[int]]:
    """The colours of the map's cells, row by row: red, green, blue each."""
    script = """canvas => {
        const { width, height } = canvas;
        return Array.from(canvas.getContext("2d").getImageData(0, 0, width, height).data);
    }"""
    values = page.locator("#map-grid canvas").evaluate(script)
    return [values[at : at + 3] for at in range(0, len(values), 4)]


def darkest(page: Page, num_columns: int) -> list[int]:
    """The column of the darkest cell in each row of the map."""
    sums = [sum(colour) for colour in colours(page)]
    rows = [sums[at : at + num_columns] for at in range(0, len(sums), num_columns)]
    return [row.index(min(row)) for row in rows]


def assert_no_sideways_scrolling(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_sentence_is_translated_and_shown_with_its_attention(page: Page) -> None:
    translate(page)
    found = page.get_by_role("region", name="Translations").get_by_role("listitem")
    expect(found).to_have_count(3)
    expect(found.nth(0)).to_contain_text("A DOG RUNS FAST")
    expect(found.nth(0)).to_contain_text("Its attention is shown below")
    expect(found.nth(0)).to_contain_text("log-probability \u22120.50")
    expect(found.nth(0)).to_contain_text("90% per piece")  # exp(-0.5 / 5)
    expect(found.nth(1)).not_to_contain_text("attention")
    expect(pieces(page, "source")).to_have_text(["a", "dog", "runs", "fast", "end"])
    expect(pieces(page, "target")).to_have_text(["A", "DOG", "RUNS", "FAST", "end"])
    assert darkest(page, 5) == [0, 1, 2, 3, 4]
    expect(page.locator("#status")).to_have_text(
        re.compile(r"Translated in [\d.]+ m?s, of which [\d.]+ ms in the model \(k8, version 1\)\.")
    )
    facts = page.locator("#facts")
    for fact in ("k8, version 1", "K-memory, K = 8", "English to German", "Beam 10"):
        expect(facts).to_contain_text(fact)


def test_real_models_of_subwords_are_shown_as_they_translate(
    browser: Browser, text_models: dict[str, Path]
) -> None:
    texts = sentences(2, seed=5)
    with serving(text_models) as address, opened(browser, address) as page:
        expect(page.locator("#facts")).to_contain_text("slots, version 1")
        for name, folder in text_models.items():
            page.get_by_role("radio", name=name).check()
            model = LoadedModel(folder / "1")
            for text in texts:
                found = model.run("align", {"text": np.array([text.encode()], object)})
                translate(page, text)
                expect(page.locator("#status")).to_contain_text(f"({name}, version 1)")
                for side in ("source", "target"):
                    shown = [piece.decode() for piece in found[f"{side}_pieces"][0]]
                    expect(pieces(page, side)).to_have_count(len(shown))
                    names = [one.replace("\u2581", "").replace("</s>", "end") for one in shown]
                    written = pieces(page, side).all_inner_texts()
                    assert [one.strip() for one in written] == names
                translations = [one.decode() for one in found["translations"][0]]
                expect(best(page)).to_contain_text(translations[0])
                expect(page.locator("#other-translations li")).to_contain_text(translations[1:])
                pieces(page, "target").first.hover()
                strongest = found["alignments"][0, 0].max()
                expect(page.locator("#readout")).to_contain_text(f" {strongest:.2f}")
            has_slots = "alpha" in found
            assert has_slots == (name == "slots")
            expect(page.locator("#slots")).to_be_visible(visible=has_slots)
        page.get_by_role("radio", name="slots").check()
        expect(page.locator("#slot option")).to_have_count(4)  # all slots, and each of three


def test_the_others_of_a_long_translation_are_folded_away(page: Page) -> None:
    translate(page)
    expect(page.get_by_text("A DOG RUNS FAST!")).to_be_visible()
    translate(page, "and so on " * 50)
    expect(page.locator("#other-translations")).to_be_hidden()
    page.get_by_text("The next 2 translations of the beam").click()
    expect(page.locator("#other-translations li")).to_have_count(2)


def test_the_example_is_offered(page: Page) -> None:
    page.get_by_role("button", name="A man rides a bike.").click()
    expect(best(page)).to_contain_text("A MAN RIDES A BIKE.")
    expect(page.get_by_label("Text in English")).to_have_value("A man rides a bike.")


def test_pointing_at_a_piece_lights_what_it_attends_to(page: Page) -> None:
    translate(page)
    assert shares(page, "source") == [0.0] * 5
    pieces(page, "target").nth(1).hover()
    lit = shares(page, "source")
    assert lit[1] == 1.0 and max(lit[:1] + lit[2:]) < 0.2
    expect(page.locator("#readout")).to_contain_text("DOG from dog 0.87")
    expect(page.locator(".row-band")).to_be_visible()
    page.locator("h1").hover()
    assert shares(page, "source") == [0.0] * 5
    expect(page.locator(".row-band")).to_be_hidden()
    pieces(page, "source").nth(2).hover()
    assert shares(page, "target")[2] == 1.0
    expect(page.locator("#readout")).to_contain_text("runs to RUNS 0.87")
    expect(page.locator(".column-band")).to_be_visible()


def test_pointing_into_the_map_names_the_cell(page: Page) -> None:
    translate(page)
    canvas = page.locator("#map-grid canvas")
    cell = canvas.evaluate("canvas => canvas.clientWidth") / 5
    canvas.hover(position={"x": 3.5 * cell, "y": 0.5 * cell}, force=True)  # lines cover it
    expect(page.locator("#readout")).to_have_text("A from fast 0.02")
    canvas.click(position={"x": 3.5 * cell, "y": 3.5 * cell}, force=True)
    page.mouse.move(0, 0)  # a clicked cell stays marked
    expect(page.locator("#readout")).to_contain_text("FAST from fast 0.87")


def test_all_of_it_works_with_the_keyboard_alone(page: Page) -> None:
    expect(page.locator("#facts")).to_contain_text("k8")
    press = page.keyboard.press
    for _ in range(2):  # to the models (one stop) and the text
        press("Tab")
    page.keyboard.type(SENTENCE)
    press("Control+Enter")
    expect(page.locator("#status")).to_contain_text("Translated in")
    for _ in range(5):  # past the buttons and the other translations to the pieces
        press("Tab")
    press("ArrowRight")
    dog = pieces(page, "target").nth(1)
    expect(dog).to_be_focused()
    expect(dog).to_have_attribute("aria-selected", "true")
    label = dog.get_attribute("aria-label")
    assert label is not None and label.startswith("DOG: from dog 0.87, ") and label.count(",") == 2
    assert shares(page, "source")[1] == 1.0
    press("End")
    expect(pieces(page, "target").last).to_be_focused()
    press("Home")
    press("ArrowLeft")  # stays at the first piece
    expect(pieces(page, "target").first).to_be_focused()
    press("Escape")
    assert shares(page, "source") == [0.0] * 5
    for _ in range(2):  # past the map's scrolling box to the slots
        press("Tab")
    press("ArrowDown")
    expect(page.locator("#map-caption")).to_contain_text("alone")
    press("Tab")
    press("Enter")  # the first bar is the selected slot, so it is switched off
    expect(page.locator("#map-caption")).to_contain_text("All slots, combined")


def test_a_slot_is_shown_alone(page: Page) -> None:
    translate(page)
    combined = colours(page)
    page.get_by_label("Show in the map").select_option("3")
    expect(page.locator("#map-caption")).to_contain_text("Slot 4 alone")
    sums = [sum(colour) for colour in colours(page)]
    assert sums.index(min(sums)) == 3 * 5 + 3  # only piece 4 of each side uses slot 4
    expect(page.locator("#highest")).to_contain_text("0.86")  # 0.93 times 0.93
    pieces(page, "target").nth(1).click()
    bars = page.locator("#slot-bars button")
    expect(bars.first).to_have_text(re.compile(r"Slot 2\s*0\.93"))
    bars.first.click()
    expect(bars.first).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Show in the map")).to_have_value("1")
    bars.first.click()
    expect(page.get_by_label("Show in the map")).to_have_value("all")
    assert colours(page) == combined


def test_the_slots_that_are_read_most_come_first(page: Page) -> None:
    translate(page, "a dog runs fast and a cat runs after it")  # pieces 9 to 11 use slots 1 to 3
    listed = page.locator("#slot option").all_inner_texts()
    assert [name.split(" (")[0] for name in listed[1:5]] == ["Slot 1", "Slot 2", "Slot 3", "Slot 4"]
    assert len(listed) == 9


def test_another_model_translates_the_same_text(page: Page) -> None:
    translate(page)
    page.get_by_role("radio", name="bahdanau").check()
    expect(page.locator("#status")).to_contain_text("(bahdanau, version 1)")
    assert darkest(page, 5) == [4, 3, 2, 1, 0]
    expect(page.locator("#slots")).to_be_hidden()
    expect(page.locator("#facts")).to_contain_text("Bahdanau")
    page.get_by_role("radio", name="k8").check()
    expect(page.locator("#status")).to_contain_text("(k8, version 1)")
    expect(page.locator("#slots")).to_be_visible()


def test_a_model_without_alignments_still_translates(page: Page) -> None:
    page.get_by_role("radio", name="plain").check()
    expect(page.get_by_label("Symbols, with spaces between them")).to_be_visible()
    translate(page, "x y")
    expect(best(page)).to_contain_text("X Y")
    expect(page.locator("#attention-about")).to_contain_text("without its alignments")
    expect(page.locator("#attention")).to_be_hidden()


def test_line_breaks_become_spaces(page: Page) -> None:
    translate(page, "a dog \n\nruns\n")
    expect(best(page)).to_contain_text("A DOG RUNS")
    expect(pieces(page, "source")).to_have_count(4)


def test_an_encoder_with_other_outputs_than_pieces_has_no_map(page: Page) -> None:
    def with_fewer_outputs(route: Route) -> None:
        answer = route.fetch()
        (prediction,) = answer.json()["predictions"]
        prediction["alignments"] = [row[::2] for row in prediction["alignments"]]
        route.fulfill(response=answer, json={"predictions": [prediction]})

    page.route("**/*:predict", with_fewer_outputs)
    translate(page)
    expect(best(page)).to_contain_text("A DOG RUNS FAST")
    expect(page.locator("#attention-about")).to_contain_text("no output for each piece")
    expect(page.locator("#attention")).to_be_hidden()


def test_a_new_version_is_described_by_its_own_export(page: Page) -> None:
    def of_next_version(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, headers={**answer.headers, "x-model-version": "2"})

    def described_anew(route: Route) -> None:
        answer = route.fetch()
        models = answer.json()["models"]
        for model in models:
            model["export"]["beam_size"] = 77
        route.fulfill(response=answer, json={"models": models})

    page.route("**/*:predict", of_next_version)
    page.route("**/models.json", described_anew)
    translate(page)
    expect(page.locator("#facts")).to_contain_text("version 2")
    expect(page.locator("#facts")).to_contain_text("Beam 77")
    expect(page.locator("#status")).to_contain_text("version 2")


def test_the_table_has_the_strongest_source_pieces(page: Page) -> None:
    translate(page)
    page.get_by_text("The map as a table").click()
    row = page.get_by_role("table").get_by_role("row").nth(2)
    expect(row.get_by_role("rowheader")).to_have_text("DOG")
    expect(row.get_by_role("cell")).to_contain_text("dog 0.87")


def test_an_empty_text_says_what_to_do(page: Page) -> None:
    expect(page.locator("#facts")).to_contain_text("k8")
    page.get_by_label("Text in English").fill("   ")
    page.get_by_role("button", name="Translate").click()
    expect(page.get_by_role("alert")).to_have_text("Type something to translate first.")
    expect(page.get_by_label("Text in English")).to_be_focused()
    translate(page)
    expect(page.locator("#error")).to_be_empty()


def test_a_refusal_is_shown_and_the_text_kept(browser: Browser, address: str) -> None:
    text = "long " * (MAX_TEXT_BYTES // 5 + 1)
    with opened(browser, address, expects_refusal=True) as page:
        translate(page)
        page.get_by_label("Text in English").fill(text)
        page.get_by_role("button", name="Translate").click()
        expect(page.get_by_role("alert")).to_contain_text(str(MAX_TEXT_BYTES))
        expect(page.get_by_label("Text in English")).to_have_value(text)
        expect(page.locator("#answer")).to_be_hidden()


def test_a_busy_server_says_when_to_try_again(browser: Browser, address: str) -> None:
    body = '{"error": "the queue is full"}'
    with opened(browser, address, expects_refusal=True) as page:
        page.route(
            "**/*:predict",
            lambda route: route.fulfill(status=503, headers={"Retry-After": "2"}, body=body),
        )
        page.get_by_label("Text in English").fill(SENTENCE)
        page.get_by_role("button", name="Translate").click()
        expect(page.get_by_role("alert")).to_contain_text("Try again in 2 seconds.")
        expect(page.get_by_role("alert")).to_contain_text("Try again now.")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda route: route.abort(), "The server did not answer."),
        (lambda route: route.fulfill(body="<html>"), "The server's answer could not be read."),
        (lambda route: route.fulfill(status=500, body="{}"), "Internal Server Error"),
        (lambda route: route.fulfill(body='{"predictions": [{"y": 3}]}'), "does not translate"),
    ],
)
def test_a_failure_is_shown(browser: Browser, address: str, what: Any, said: str) -> None:
    with opened(browser, address, expects_refusal=True) as page:
        page.route("**/*:predict", what)
        page.get_by_label("Text in English").fill(SENTENCE)
        page.get_by_role("button", name="Translate").click()
        expect(page.get_by_role("alert")).to_contain_text(said)
        expect(page.get_by_role("button", name="Translate")).to_be_enabled()


def test_the_token_is_asked_for_sent_and_not_stored(
    browser: Browser, models: dict[str, Path]
) -> None:
    with (
        serving({"k8": models["k8"]}, TOKEN) as address,
        opened(browser, address, expects_refusal=True) as page,
    ):
        expect(page.get_by_role("alert")).to_contain_text("asks for an access token")
        expect(page.get_by_label("Access token")).to_be_focused()
        page.get_by_label("Text").fill(SENTENCE)
        page.get_by_label("Access token").fill("another")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("does not accept")
        page.get_by_label("Access token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(best(page)).to_contain_text("A DOG RUNS FAST")
        expect(page.get_by_label("Access token")).to_be_hidden()
        expect(page.locator("#models")).to_be_hidden()  # there is only one model
        translate(page, "again")  # the page keeps the token
        stored = "[localStorage.length, sessionStorage.length, document.cookie]"
        assert page.evaluate(stored) == [0, 0, ""]


def test_an_older_answer_does_not_replace_a_newer_one(page: Page) -> None:
    held: list[Route] = []

    def hold_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/*:predict", hold_first)
    page.get_by_label("Text in English").fill("first")
    button = page.locator("#translate")
    button.click()
    expect(button).to_be_disabled()
    expect(button).to_have_text("Translating\u2026")
    expect(page.locator("#answer")).to_have_attribute("aria-busy", "true")
    page.get_by_label("Text in English").fill("second")
    page.keyboard.press("Control+Enter")
    expect(best(page)).to_contain_text("SECOND")
    first = {"translations": ["FIRST"], "log_probs": [-1.0], "num_tokens": [1]}
    held[0].fulfill(json={"predictions": [{**first, "source_is_cut": False}]})
    page.wait_for_timeout(300)
    expect(best(page)).to_contain_text("SECOND")
    translate(page, "third")
    expect(best(page)).to_contain_text("THIRD")
    expect(button).to_be_enabled()


@pytest.mark.parametrize("text", [SCRIPT, "<img src=x>", "\U0001f600 \u202eabc", "שלום עולם"])
def test_strange_text_is_shown_as_text(page: Page, text: str) -> None:
    translate(page, text)
    expect(best(page).locator("p").first).to_have_text(text.upper())
    expect(pieces(page, "source")).to_have_count(len(text.split()) + 1)
    assert page.evaluate("window.wasRun") is None
    assert page.locator("main img, main script").count() == 0


def test_pieces_from_right_to_left_follow_the_arrow_keys(page: Page) -> None:
    translate(page, "שלום עולם טוב")
    pieces(page, "source").first.focus()
    page.keyboard.press("ArrowLeft")
    expect(pieces(page, "source").nth(1)).to_be_focused()


def test_a_cut_text_is_said(page: Page) -> None:
    translate(page, "a " * 301)
    expect(page.locator("#cut")).to_contain_text("was cut")
    translate(page)
    expect(page.locator("#cut")).to_be_hidden()


def test_a_phone_shows_all_without_sideways_scrolling(browser: Browser, address: str) -> None:
    screen = {"width": 360, "height": 740}
    with opened(browser, address, viewport=screen, has_touch=True, is_mobile=True) as page:
        assert_no_sideways_scrolling(page)
        translate(page, f"{SENTENCE} {'w' * 200} " + "and so on " * 40)
        assert_no_sideways_scrolling(page)
        # The map scrolls in its own box.
        assert page.locator("#map-box").evaluate("box => box.scrollWidth > box.clientWidth")
        pieces(page, "target").nth(1).tap()
        assert shares(page, "source")[1] == 1.0
        assert_no_sideways_scrolling(page)


def test_what_belongs_to_a_piece_far_down_is_scrolled_into_sight(page: Page) -> None:
    translate(page, "and so on " * 60 + "and then")
    page.get_by_role("radio", name="bahdanau").check()  # its last piece attends to the first
    expect(page.locator("#status")).to_contain_text("(bahdanau")
    last = pieces(page, "target").last
    last.click()
    page.locator("#map-box").scroll_into_view_if_needed()
    label = page.locator(".row-labels .is-marked")
    expect(label).to_have_text("end")
    expect(label).to_be_in_viewport()
    last.focus()
    page.keyboard.press("Home")
    source = pieces(page, "source").last
    assert shares(page, "source")[-1] == 1.0
    page.locator("#source-pieces").scroll_into_view_if_needed()
    expect(source).to_be_in_viewport()


def test_light_and_dark_have_colours_of_their_own(page: Page) -> None:
    script = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    translate(page)
    light, light_map = page.evaluate(script), colours(page)
    page.emulate_media(color_scheme="dark")
    for _ in range(200):  # the map is painted anew in a later frame
        if colours(page) != light_map:
            break
        page.wait_for_timeout(50)
    assert page.evaluate(script) != light
    empty, full = colours(page)[1], colours(page)[0]
    assert sum(empty) < sum(full)  # in dark mode, the strongest cell is the lightest
    assert sum(light_map[1]) > sum(light_map[0])


def test_nothing_moves_where_that_is_not_wanted(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    translate(page)
    duration = "one => getComputedStyle(one).transitionDuration"
    assert pieces(page, "source").first.evaluate(duration) == "0s"
