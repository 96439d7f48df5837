"""The page, in a real browser."""

import csv
import shutil
import time
from pathlib import Path

import pytest
from tests.server.conftest import running

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(
        not (BROWSER and DRIVER), reason="needs chromium and chromedriver (apt-get install chromium-driver)"
    ),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
TEXT = "He had the apple. It was not a saw!"
TORN = "Not a saw but the drill of apple", "He had the apple. It was not a saw!", "The pear and a saw by the drill"


@pytest.fixture(scope="module")
def address(folders, tmp_path_factory):
    examples = tmp_path_factory.mktemp("examples") / "examples.csv"
    examples.write_text("text,label\na ripe plum,fruit\nthe saw and the drill,tool\n")
    with running(*folders, "--quiet", "--examples", str(examples)) as (address, _):
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,1400",
    ):
        options.add_argument(argument)
    folder = str(tmp_path_factory.mktemp("downloads"))
    options.add_experimental_option("prefs", {"download.default_directory": folder})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.downloads = folder
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, address):
    browser.get("about:blank")
    browser.get(address)
    yield Page(browser)
    complaints = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert not complaints, complaints


class Page:
    def __init__(self, browser, ready="#compare-label"):
        self.browser = browser
        self.wait(lambda: self.all(ready) and self.one(ready).is_displayed())

    def wait(self, condition):
        # What is redrawn while it is looked at is looked for again.
        ignored = [NoSuchElementException, StaleElementReferenceException]
        WebDriverWait(self.browser, 200, ignored_exceptions=ignored).until(lambda _: condition())

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def classify(self, text=TEXT):
        self.one("#text").clear()
        self.one("#text").send_keys(text)
        self.one("#go").click()
        self.wait(lambda: self.all(".word") and not self.one("#said").text)

    def probability(self, label="fruit", panel=0):
        read = """const parts = [...document.querySelectorAll('.panel')[arguments[1]].querySelectorAll('.bars > *')];
                  return parts[parts.findIndex((one) => one.textContent === arguments[0]) + 2].dataset.p;"""
        return float(self.browser.execute_script(read, label, panel))  # at one moment: drawn anew at every answer

    def script(self, code, *arguments):
        return self.browser.execute_script(code, *arguments)

    def file(self, path):
        self.one("#csv").send_keys(str(path))
        self.wait(lambda: self.one("#space-go").is_displayed() or self.one("#said.problem"))

    def score(self, path):
        self.file(path)
        self.one("#space-go").click()
        self.wait(lambda: "documents scored" in self.one("#said").text)


def test_the_empty_page_teaches(page):
    assert page.one("#welcome").is_displayed() and "fruit, tool" in page.one("#card").text
    assert "trained" in page.one("#card").text and "MB" in page.one("#card").text
    examples = page.all(".example")
    assert [example.text.split("\n")[0] for example in examples] == ["fruit", "tool"]
    examples[1].click()
    page.wait(lambda: page.all(".word") and not page.one("#said").text)
    assert page.one("#text").get_attribute("value") == "the saw and the drill"
    assert page.one(".answer").text.startswith("tool") and not page.one("#welcome").is_displayed()


def test_a_pasted_document_gets_its_label(page, fitted_flat):
    page.classify()
    assert page.one(".answer").text.split()[0] == fitted_flat.predict([TEXT])[0]
    assert "% sure" in page.one(".answer").text
    assert page.probability() == pytest.approx(fitted_flat.predict_proba([TEXT])[0, 0], abs=1e-6)
    assert [word.text for word in page.all(".word")] == "He had the apple It was not a saw !".split()
    assert page.one(".text").text.replace("\n", " ").endswith("saw!")
    page.wait(lambda: page.one(".folded").is_displayed())
    page.one(".folded").click()
    assert len(page.all(".graph .node")) == 10


def test_words_and_graph_are_linked(page):
    page.classify()
    apple = next(word for word in page.all(".word") if word.text == "apple")
    page.script("arguments[0].dispatchEvent(new MouseEvent('mouseenter'))", apple)
    assert [node.text for node in page.all(".graph .node.near")].count("apple") == 1
    page.script("arguments[0].dispatchEvent(new MouseEvent('mouseleave'))", apple)
    assert not page.all(".graph .near")


def test_every_edge_can_be_hit_over_its_whole_length(page):
    page.classify("a ripe plum and the saw by the drill, not the pear of the hammer or an apple with the nail")
    page.one(".folded").click()
    missed = page.script(
        """const missed = [];
        for (const group of document.querySelectorAll('[data-edge]')) {
          const path = group.querySelector('.edge'), length = path.getTotalLength();
          for (const share of [0.25, 0.5, 0.75]) {
            const place = () => path.getPointAtLength(length * share).matrixTransform(path.getScreenCTM());
            scrollBy(0, place().y - innerHeight / 2); // what is out of sight cannot be hit
            const at = place();
            const top = document.elementFromPoint(at.x, at.y)?.closest('[data-edge], [data-node]');
            if (!top || top.dataset.node !== undefined) missed.push([group.getAttribute('aria-label'), share]);
          }
        }
        return missed;"""
    )
    assert not missed, missed


def test_the_steps_add_up(page, fitted_flat):
    import math

    page.classify()
    numbers = [one.text.replace("−", "-").split()[0] for one in page.all(".steps .number")]
    p = fitted_flat.predict_proba([TEXT])[0].max()
    start = float(numbers[0]) / 100
    total = sum(map(float, numbers[1:-1]))
    assert math.log(start / (1 - start)) + total == pytest.approx(math.log(p / (1 - p)), abs=0.2), "but for rounding"


def test_a_threshold_takes_colour_away(page):
    page.classify()
    coloured = "return [...document.querySelectorAll('.word')].filter((one) => one.style.background).length"
    before = page.script(coloured)
    page.script("const t = document.querySelector('.threshold'); t.value = 60; t.dispatchEvent(new Event('input'))")
    assert 0 < page.script(coloured) < before


def test_taking_a_word_out_draws_everything_anew(page, fitted_flat):
    page.classify()
    before = page.probability()
    next(word for word in page.all(".word") if word.text == "not").click()
    page.wait(lambda: page.probability() != before)
    left = "He had the apple. It was a saw!"
    assert page.probability() == pytest.approx(fitted_flat.predict_proba([left])[0, 0], abs=1e-6)
    taken = next(word for word in page.all(".word") if word.text == "not")
    assert taken.get_attribute("aria-pressed") == "true" and "out" in taken.get_attribute("class")
    if page.one(".folded").is_displayed():
        page.one(".folded").click()
    pairs = [edge.get_attribute("aria-label") for edge in page.all("[data-edge]")]
    assert any("was → a," in pair for pair in pairs), "the edge that bridges the gap"
    assert not any("not" in pair for pair in pairs)
    assert page.all(".ghost"), "the old value is marked"
    page.one(".reset").click()
    page.wait(lambda: page.probability() == before)


def test_the_graph_does_not_stay_dim_when_the_word_that_lit_it_is_gone(page):
    page.classify()
    before = page.probability()
    apple = next(word for word in page.all(".word") if word.text == "apple")
    page.script("arguments[0].dispatchEvent(new MouseEvent('mouseenter'))", apple)
    assert page.all(".graph.lit")
    page.script("arguments[0].click()", apple)
    page.wait(lambda: page.probability() != before)
    page.one("h1").click()
    assert not page.all(".graph.lit")


def test_what_the_colours_mean_by_attention(page):
    page.classify()
    page.one(".why-button").click()
    assert "gradients" in page.one(".meaning").text and page.one(".sides").is_displayed()
    page.script(
        "const s = document.querySelector('#method'); s.value = 'attention'; s.dispatchEvent(new Event('change'))"
    )
    page.wait(lambda: "attention" in page.one(".meaning").text)
    assert page.one(".looks").is_displayed() and not page.one(".sides").is_displayed()


def test_another_class_is_explained_where_its_bar_is_clicked(page, fitted_flat):
    page.classify()
    predicted, other = sorted(["fruit", "tool"], key=lambda name: name != fitted_flat.predict([TEXT])[0])
    assert page.one(".class-name").text == predicted
    next(name for name in page.all(".bars button.name") if name.text == other).click()
    page.wait(lambda: page.one(".class-name").text == other)
    assert page.one(".answer").text.startswith(predicted)
    pressed = [name.text for name in page.all(".bars button.name") if name.get_attribute("aria-pressed") == "true"]
    assert pressed == [other]


def test_taking_an_edge_out_moves_the_probabilities(page, models):
    def moved(text, pair):
        """How far an edge moves the probability of "fruit": a torn document's, whatever the model has learnt."""
        flat = models["flat"]
        with_edge, without = (flat.predict_without(text, [], edges).probabilities[0, 0] for edges in ([], [pair]))
        return without - with_edge

    words = {text: text.lower().replace(".", "").replace("!", "").split() for text in TORN}
    pairs = [(text, pair) for text in TORN for pair in zip(words[text], words[text][1:], strict=False)]
    text, pair = max(pairs, key=lambda item: abs(moved(*item)))
    assert abs(moved(text, pair)) > 2e-3
    page.classify(text)
    if page.one(".folded").is_displayed():
        page.one(".folded").click()
    expected = models["flat"].predict_without(text, [], [pair]).probabilities[0, 0]
    edge = next(group for group in page.all("[data-edge]") if " → ".join(pair) in group.get_attribute("aria-label"))
    page.browser.execute_script("arguments[0].dispatchEvent(new MouseEvent('click'))", edge)
    page.wait(lambda: page.probability() == pytest.approx(expected, abs=1e-6))
    edge = next(group for group in page.all("[data-edge]") if " → ".join(pair) in group.get_attribute("aria-label"))
    assert edge.get_attribute("aria-pressed") == "true"


def test_everything_works_by_keyboard(page):
    field = page.one("#text")
    field.click()
    field.send_keys("a hammer here", Keys.CONTROL, Keys.ENTER)
    page.wait(lambda: page.all(".word") and not page.one("#said").text)
    before = page.probability()
    page.browser.execute_script("document.querySelector('.word').focus()")
    page.browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert page.browser.switch_to.active_element.text == "hammer"
    page.browser.switch_to.active_element.send_keys(Keys.ENTER)
    page.wait(lambda: page.probability() != before)
    assert page.browser.switch_to.active_element.text == "hammer", "focus stays where it was"
    page.browser.execute_script("document.querySelector('[data-node=\"0\"]').focus()")
    assert "shown" in page.one("[data-word='0']").get_attribute("class")  # its place in the text
    drawn = len(page.all("[data-node]"))
    page.browser.switch_to.active_element.send_keys(Keys.SPACE)
    page.wait(lambda: page.one("[data-word='0']").get_attribute("aria-pressed") == "true")
    page.wait(lambda: len(page.all("[data-node]")) < drawn)  # redrawn while one of its words had the focus


def test_two_models_side_by_side_are_clicked_together(page):
    page.classify()
    page.one("#compare").click()
    page.wait(lambda: len(page.all(".panel")) == 2 and page.all(".answer")[1].text and not page.one("#said").text)
    assert [select.get_attribute("value") for select in page.all(".panel .model")] == ["flat", "clique"]
    before = [page.probability(panel=k) for k in (0, 1)]
    next(word for word in page.all(".panel .word") if word.text == "apple").click()
    page.wait(lambda: all(page.probability(panel=k) != before[k] for k in (0, 1)))
    out = page.script("return [...document.querySelectorAll('.word.out')].map((one) => one.textContent)")
    assert out == ["apple", "apple"]


def test_two_models_side_by_side_are_never_one(page):
    page.classify()
    page.script("const s = document.querySelector('.model'); s.value = 'clique'; s.dispatchEvent(new Event('change'))")
    page.wait(lambda: not page.one("#said").text and not page.all(".panel.stale"))
    page.one("#compare").click()
    page.wait(lambda: len(page.all(".panel")) == 2 and page.all(".answer")[1].text and not page.one("#said").text)
    assert [select.get_attribute("value") for select in page.all(".panel .model")] == ["clique", "flat"]


def test_a_model_without_probabilities_shows_none(page):
    page.classify()
    page.script("const s = document.querySelector('.model'); s.value = 'svm'; s.dispatchEvent(new Event('change'))")
    page.wait(lambda: "no probabilities" in page.one(".bars").text)
    assert "sure" not in page.one(".answer").text and not page.all(".bars .track")


def test_the_address_holds_the_text_and_sends_it_nowhere(page, address):
    page.classify("a ripe plum & 100 %")
    held = page.browser.current_url
    assert held.startswith(address) and "#text=" in held
    page.browser.get("about:blank")
    page.browser.get(held)
    page.wait(lambda: page.all(".word") and not page.one("#said").text)
    assert page.one("#text").get_attribute("value") == "a ripe plum & 100 %"


def saved(page, name):
    file, end = Path(page.browser.downloads) / name, time.time() + 200
    while not file.exists() and time.time() < end:
        time.sleep(0.1)
    rows = list(csv.reader(file.open(newline="", encoding="utf-8")))
    file.unlink()
    return rows


def test_a_csv_is_a_workspace(page, tmp_path, fitted_flat):
    texts = ["an apple", 'a "saw", they\nsaid', "=1+1", "plum 😀"] * 70
    source = tmp_path / "documents.csv"
    with source.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "text"], *[[k, text] for k, text in enumerate(texts)]])
    page.score(source)
    predicted = fitted_flat.predict(texts).tolist()
    assert page.one("#space-count").text == "280 of 280 shown"
    assert len(page.all(".line")) < 60, "only what is in sight is drawn"
    page.one("#download").click()
    rows = saved(page, "scored.csv")
    assert rows[0] == ["id", "text", "label", "p(fruit)", "p(tool)"]
    assert [row[1].removeprefix("'") for row in rows[1:]] == texts and rows[3][1] == "'=1+1"  # not a formula
    assert [row[2] for row in rows[1:]] == predicted
    next(button for button in page.all("#space-overview .bars .name") if button.text == "fruit").click()
    assert page.one("#space-count").text == f"{predicted.count('fruit')} of 280 shown"
    next(button for button in page.all("#space-overview button") if "near-duplicates" in button.text).click()
    page.one("#space-clear").click()
    strange = next(button for button in page.all("#space-overview button") if "unknown words" in button.text)
    assert strange.text == "210 with unknown words"
    strange.click()
    assert page.one("#space-count").text == "210 of 280 shown"
    page.one("#space-clear").click()
    page.one("#space-search").send_keys("saw")
    assert page.one("#space-count").text == "70 of 280 shown"
    next(button for button in page.all(".head button") if button.text.startswith("sure")).click()
    page.all(".line")[0].click()
    page.wait(lambda: page.all(".word") and not page.one("#said").text)
    assert page.one("#text").get_attribute("value") == texts[1]
    choose = "const s = document.querySelector('#space-correct select'); s.value = 'fruit'; "
    page.script(choose + "s.dispatchEvent(new Event('change'))")
    if predicted[1] == "tool":
        page.one("#download-corrections").click()
        assert saved(page, "corrections.csv") == [["text", "label"], [texts[1], "fruit"]]


def test_labels_in_a_csv_are_compared(page, tmp_path):
    file = tmp_path / "labelled.csv"
    file.write_text("text;class\na ripe plum;fruit\nthe saw;tool\nthe drill;fruit\n")
    page.score(file)
    assert "67 % right" in page.one(".accuracy").text and "1 mistakes" in page.one(".accuracy").text
    cell = next(
        b for b in page.all(".confusion button") if b.get_attribute("aria-label") == "true fruit, predicted tool: 1"
    )
    cell.click()
    assert page.one("#space-count").text == "1 of 3 shown"


def test_corrections_are_of_the_file_that_is_open_and_can_be_taken_back(page, tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("text,label\na ripe plum,fruit\nthe saw,tool\n")
    second.write_text("text\nthe drill\n")
    page.score(first)
    page.all(".line")[0].click()
    page.wait(lambda: page.one("#space-correct select").is_displayed())
    choose = "const s = document.querySelector('#space-correct select'); s.value = arguments[0]; "
    for label, shown in (("tool", True), ("", False), ("fruit", True)):  # the model's own class, too
        page.script(choose + "s.dispatchEvent(new Event('change'))", label)
        assert page.one("#download-corrections").is_displayed() == page.one("#space-undo").is_displayed() == shown
    page.one("#space-undo").click()
    assert not page.one("#download-corrections").is_displayed()
    assert page.one("#space-correct select").get_attribute("value") == ""
    page.score(second)
    assert not page.one("#space-correct").is_displayed() and not page.all("#space-correct select")


def test_files_that_the_page_does_not_read(page, tmp_path):
    for name in ("table.xlsx", "rows.json"):
        (tmp_path / name).write_bytes(b"[1]")
        page.script("document.querySelector('#said').className = ''")
        page.one("#csv").send_keys(str(tmp_path / name))
        page.wait(lambda name=name: name in page.one("#said.problem").text)
        assert "mpad predict" in page.one("#said").text


@pytest.fixture(scope="module")
def tagged_address(fruit_corpus, tmp_path_factory):
    """A server of a model of many labels, one of which has a comma in its name."""
    from mpad import MPADClassifier

    texts, labels = fruit_corpus
    tags = [[label, *(["drill, maybe"] if "drill" in text else [])] for text, label in zip(texts, labels, strict=True)]
    options = {"hidden": 16, "vector_size": 16, "max_epochs": 20, "learning_rate": 0.02, "device": "cpu"}
    folder = tmp_path_factory.mktemp("many") / "tags"
    MPADClassifier(random_state=0, batch_size=16, vectors=None, **options).fit(texts, tags).save(folder)
    with running(str(folder), "--quiet") as (at, _):
        yield at, folder


def test_many_labels_are_corrected_one_by_one(browser, tagged_address, tmp_path):
    from mpad.data.readers import read_documents
    from mpad.inference import load

    address, folder = tagged_address
    texts = ["a ripe plum", "the drill of the drill", "the saw"]
    model = load(folder)
    given = model.labels.to_names(model.predict(texts))
    assert given == [["fruit"], ["drill, maybe", "tool"], ["tool"]]
    source = tmp_path / "tagged.csv"
    source.write_text("text,tags\na ripe plum,fruit\nthe drill of the drill,tool|fruit\nthe saw,\n")
    browser.get("about:blank")
    browser.get(address)
    page = Page(browser, ready="#card dt")
    page.score(source)
    rows = {row.split(" ")[0]: row.split(" ")[1:] for row in (one.text for one in page.all(".confusion tr")[1:])}
    assert rows["fruit"] == ["0.667", "1", "1", "0"] and rows["tool"] == ["0.667", "1", "0", "1"]
    assert "micro-F1" in page.all(".accuracy")[0].text and "33 % right in all labels" in page.all(".accuracy")[1].text
    next(b for b in page.all(".confusion button") if b.get_attribute("aria-label") == "tool, wrongly given: 1").click()
    assert page.one("#space-count").text == "1 of 3 shown"
    page.one("#space-clear").click()
    page.all(".line")[1].click()
    page.wait(lambda: page.all(".word") and not page.one("#said").text)
    assert "drill, maybe" in page.one(".answer").text

    def press(label):
        next(button for button in page.all("#space-correct .label") if button.text == label).click()

    pressed = [b.text for b in page.all("#space-correct .label") if b.get_attribute("aria-pressed") == "true"]
    assert pressed == ["drill, maybe", "tool"]
    press("fruit")
    press("drill, maybe")
    page.all(".line")[2].click()
    page.wait(lambda: page.one("#space-correct").text.startswith("Row 3"))
    press("tool")
    assert page.all(".line")[2].text.endswith("no label")
    page.one("#download-corrections").click()
    assert "--add corrections.csv --separator '|'" in page.one("#said").text
    file = Path(browser.downloads) / "corrections.csv"
    page.wait(file.exists)
    learnt = read_documents(file, separator="|")
    assert learnt.texts == texts[1:] and learnt.labels == [["fruit", "tool"], []]
    file.unlink()
    page.one("#download").click()
    rows = saved(page, "scored.csv")
    assert rows[0][2] == "label" and [row[2].split("|") for row in rows[1:]] == given
    assert [row[-1] for row in rows[1:]] == ["", "fruit|tool", ""]


def test_odd_csv_files(page, tmp_path):
    def written(content):
        file = tmp_path / f"odd{time.time()}.csv"
        file.write_bytes(content)
        return file

    def refused(content, said):
        page.file(written(content))
        page.wait(lambda: said in page.one("#said").text)

    page.score(written(b"id;text\n1;an apple\n2;short row, with a comma\n3\n"))
    assert "3 documents scored" in page.one("#said").text
    page.one("#space-close").click()
    refused(b'text\n"never closed\n', "never closed")
    refused("text\ncafé\n".encode("latin-1"), "not UTF-8")
    refused(b"a,text\n1,2,3\n", "row 2 has 3 cells, the first row 2")
    page.score(written(b"text,label\n" + b"x\0y,1\n" + b"word " * 50_000 + b",2\nplum,3\n"))
    assert "2 have no class" in page.one("#said").text
    page.score(written(b"text\n" + (b"word " * 6_000 + b"\n") * 150))  # more than one request holds
    assert "150 documents scored" in page.one("#said").text


def test_a_long_document_gets_its_label_all_the_same(page):
    page.browser.execute_script("document.getElementById('text').value = 'apple '.repeat(10000)")
    page.one("#go").click()
    page.wait(lambda: page.all(".note") and "Too long to be explained" in page.one(".note").text)
    assert page.one(".answer").text.split()[0] == "fruit"


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_and_width(page, width, theme):
    """Every text is at least 4.5 to 1 against what is behind it, and nothing sticks out sideways."""
    page.browser.set_window_size(width, 1400)
    try:
        page.classify("a ripe plum and the saw, by the drill")
        if page.script("return document.documentElement.dataset.theme ?? 'light'") != theme:
            page.one("#theme").click()
        assert page.script("return document.documentElement.scrollWidth <= innerWidth")
        low = page.script((Path(__file__).parent / "contrast.js").read_text())
        assert not low, low
        sizes = page.script(
            "return [...document.querySelectorAll('.graph text')].map((one) => one.getBoundingClientRect().height)"
        )
        assert min(sizes) > 11, "legible"
    finally:
        page.script("localStorage.clear(); delete document.documentElement.dataset.theme")
        page.browser.set_window_size(1280, 1400)


def test_html_in_documents_is_text(page):
    nasty = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> <b>apple</b>"
    page.classify(nasty)
    assert page.browser.title == "mpad" and not page.all(".panel script, .panel img, .text b")
    assert "<script>" in page.one(".text").text


def test_both_themes_and_the_choice_is_remembered(page):
    def colour():
        return page.browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    assert colour() == "rgb(246, 247, 249)"
    page.one("#theme").click()
    assert colour() == "rgb(13, 17, 23)"
    page.browser.refresh()
    page.wait(lambda: page.all(".example"))
    assert colour() == "rgb(13, 17, 23)", "remembered"
    page.one("#theme").click()
    assert colour() == "rgb(246, 247, 249)"


def test_right_to_left_and_emoji_keep_their_places(page):
    text = "مرحبا 😀 the apple 👍🏽 saw"
    page.browser.execute_script("document.getElementById('text').value = arguments[0]", text)
    page.one("#go").click()
    page.wait(lambda: page.all(".word") and not page.one("#said").text)
    assert [word.text for word in page.all(".word")][-3:] == ["the", "apple", "saw"]


def test_the_examples_of_the_api_run(browser, address):
    browser.get(f"{address}/docs")
    forms = browser.find_elements(By.CSS_SELECTOR, ".try")
    paths = ["predict", "explain", "what-if", "healthz", "readyz", "metrics", "info"]
    assert [form.get_attribute("data-path") for form in forms] == paths
    for form in forms:
        form.find_element(By.CSS_SELECTOR, "button").click()
    answers = [form.find_element(By.CSS_SELECTOR, "pre") for form in forms]
    WebDriverWait(browser, 200).until(lambda _: all(one.text for one in answers))
    assert [one.text.split()[0] for one in answers] == ["200"] * len(paths), answers[2].text
    assert any("probabilities" in one.text for one in answers)


def test_an_error_is_shown_in_words(page):
    page.browser.execute_script("document.getElementById('text').value = 'a'.repeat(250000)")
    page.one("#go").click()
    page.wait(lambda: "characters" in page.one("#said").text)
    assert "problem" in page.one("#said").get_attribute("class")
    page.browser.get_log("browser")  # the browser's own line about the status


def test_an_explanation_page_shows_a_node_in_the_text(browser, fitted_flat, tmp_path):
    explanation = fitted_flat.explain("the apple <script>document.title='taken'</script> and the saw")
    file = tmp_path / "why.html"
    file.write_text(explanation.to_html(master=True), encoding="utf-8")
    browser.get(file.as_uri())
    assert "why" in browser.title
    nodes = browser.find_elements(By.CSS_SELECTOR, "svg a.node")
    node = next(n for n in nodes if n.get_attribute("textContent").endswith("the"))
    browser.execute_script("arguments[0].focus()", node)
    marked = [m for m in browser.find_elements(By.CSS_SELECTOR, "mark") if m.text == "the"]
    assert len(marked) == 2
    assert all(m.value_of_css_property("outline-style") == "solid" for m in marked)


def test_a_row_is_explained_with_the_table_in_sight(page, tmp_path):
    source = tmp_path / "rows.csv"
    source.write_text("text,label\n" + "".join(f"a ripe plum number {k},fruit\nthe saw {k},tool\n" for k in range(80)))
    page.browser.set_window_size(1280, 900)
    page.score(source)
    page.all(".line")[2].click()
    page.wait(lambda: page.all(".word") and not page.one("#said").text)
    place = (
        "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.top, b.bottom, innerHeight]"
    )
    page.wait(lambda: page.script(place, "#space-table")[0] < 5)
    for selector in (".line.at", "#space-correct", ".answer"):
        top, bottom, height = page.script(place, selector)
        assert 0 <= top < bottom <= height, selector
    page.browser.set_window_size(1280, 1400)


def test_colors_explain_the_class_in_the_headline(page):
    page.classify("the apple and the saw")
    for number in range(len(page.all(".word"))):
        assert page.one(".class-name").get_attribute("textContent") in page.one(".answer").text
        page.all(".word")[number].click()
        page.wait(lambda: page.one(".reset").is_displayed())
        page.wait(lambda: page.one(".class-name").get_attribute("textContent") in page.one(".answer").text)
        page.one(".reset").click()
        page.wait(lambda: not page.one(".reset").is_displayed())


def test_unknown_words_are_marked(page):
    page.classify("qwzx plonk vrrm")
    assert len(page.all(".word.unknown")) == 3 and "3 of 3 words" in page.one(".note").text
    page.classify("the apple")
    assert not page.all(".word.unknown")


def test_every_model_can_be_chosen_before_anything_is_asked(page, folders):
    options = [option.text for option in page.all("#model option")]
    assert page.one("#model").is_displayed() and len(options) == len(folders)
    page.script("const s = document.querySelector('#model'); s.value = arguments[0]; s.onchange()", options[1])
    assert page.one("#card-name").text == options[1]
    page.classify("the apple")
    assert page.one(".panel .model").get_attribute("value") == options[1]


def test_folded_words_make_no_links_that_the_text_does_not_have(page):
    page.classify("apple the saw. plum the drill. hammer the pear. banana the tree")
    bridges = """const g = document.querySelectorAll('.graph .bridge'); return g.length"""
    nodes = [node.get_attribute("aria-label").split(",")[0] for node in page.all(".graph .node")]
    if "word the" not in nodes:  # folded: each pair around it once, and no others
        assert page.script(bridges) == 4
