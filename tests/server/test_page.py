"""The page, in a real browser."""

import csv
import shutil
import time

import pytest
from tests.server.conftest import running

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
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
def address(folders):
    with running(folders[0], folders[1], "--quiet") as (address, _):
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
        "--window-size=1200,1400",
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
    browser.get(address)
    yield Page(browser)
    complaints = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert not complaints, complaints


class Page:
    def __init__(self, browser):
        self.browser = browser
        self.wait(lambda: self.all("#compare-label") and self.one("#compare-label").is_displayed())

    def wait(self, condition):
        WebDriverWait(self.browser, 20).until(lambda _: condition())

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def classify(self, text=TEXT):
        self.one("#text").clear()
        self.one("#text").send_keys(text)
        self.one("#go").click()
        self.wait(lambda: self.all(".word") and not self.one("#said").text)

    def probability(self, label="fruit"):
        read = "return [...document.querySelectorAll('.panel .bars > *')].map((one) => one.textContent)"
        spans = self.browser.execute_script(read)  # at one moment: they are drawn anew at every answer
        return float(spans[spans.index(label) + 2].split()[0])


def test_a_pasted_document_gets_its_label(page, fitted_flat):
    page.classify()
    assert page.one(".answer").text.split()[0] == fitted_flat.predict([TEXT])[0]
    assert page.probability() == pytest.approx(fitted_flat.predict_proba([TEXT])[0, 0], abs=1e-3)
    assert [word.text for word in page.all(".word")] == "He had the apple It was not a saw !".split()
    assert page.one(".text").text.replace("\n", " ").endswith("saw!")
    assert len(page.all(".graph .node")) == 10 and len(page.all(".share")) == 2


def test_taking_a_word_out_moves_the_probabilities(page, fitted_flat):
    page.classify()
    before = page.probability()
    apple = next(word for word in page.all(".word") if word.text == "apple")
    apple.click()
    page.wait(lambda: page.probability() != before)
    assert page.probability() == pytest.approx(
        fitted_flat.predict_proba(["He had the It was not a saw!"])[0, 0], abs=1e-3
    )
    assert apple.get_attribute("aria-pressed") == "true" and "out" in apple.get_attribute("class")
    page.one(".reset").click()
    page.wait(lambda: page.probability() == before)


def test_taking_an_edge_out_moves_the_probabilities(page, models):
    def moved(text, pair):
        """How far an edge moves the probability of "fruit": a torn document's, whatever the model has learnt."""
        flat = models["flat"]
        return flat.without(text, [], [pair])[0] - flat.without(text, [], [])[0]

    words = {text: text.lower().replace(".", "").replace("!", "").split() for text in TORN}
    pairs = [(text, pair) for text in TORN for pair in zip(words[text], words[text][1:], strict=False)]
    text, pair = max(pairs, key=lambda item: abs(moved(*item)))
    assert abs(moved(text, pair)) > 2e-3
    page.classify(text)
    expected = models["flat"].without(text, [], [pair])[0]
    edge = next(group for group in page.all("[data-edge]") if " → ".join(pair) in group.get_attribute("aria-label"))
    page.browser.execute_script("arguments[0].dispatchEvent(new MouseEvent('click'))", edge)
    assert edge.get_attribute("aria-pressed") == "true"
    page.wait(lambda: page.probability() == pytest.approx(expected, abs=6e-4))


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
    node = page.one("[data-node='0']")
    page.browser.execute_script("arguments[0].focus()", node)
    assert page.one("[data-word='0']").get_attribute("class").endswith("shown")  # its place in the text
    node.send_keys(Keys.SPACE)
    page.wait(lambda: node.get_attribute("aria-pressed") == "true")


def test_two_models_side_by_side(page):
    page.classify()
    page.one("#compare").click()
    page.wait(lambda: len(page.all(".panel")) == 2 and len(page.all(".answer")) == 2 and page.all(".answer")[1].text)
    names = [select.get_attribute("value") for select in page.all(".panel .model")]
    assert names == ["flat", "clique"]


def test_a_csv_comes_back_scored(page, tmp_path, fitted_flat):
    texts = ["an apple", 'a "saw", they\nsaid', "=1+1", "plum 😀"] * 70
    source = tmp_path / "documents.csv"
    with source.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "text"], *[[k, text] for k, text in enumerate(texts)]])
    page.one("#csv").send_keys(str(source))
    page.wait(lambda: page.one("#download").is_displayed())
    assert page.one("#progress").get_attribute("value") == "1"
    page.one("#download").click()
    from pathlib import Path

    saved = Path(page.browser.downloads) / "scored.csv"
    end = time.time() + 20
    while not saved.exists() and time.time() < end:
        time.sleep(0.1)
    rows = list(csv.reader(saved.open(newline="", encoding="utf-8")))
    assert rows[0] == ["id", "text", "label", "p(fruit)", "p(tool)"]
    assert [row[1] for row in rows[1:]] == texts
    assert [row[2] for row in rows[1:]] == fitted_flat.predict(texts).tolist()


def test_odd_csv_files(page, tmp_path):
    def upload(content, condition):
        file = tmp_path / f"odd{time.time()}.csv"
        file.write_bytes(content)
        page.one("#csv").send_keys(str(file))
        page.wait(condition)

    def said(what):
        return lambda: what in page.one("#said").text

    upload(b"id;text\n1;an apple\n2;short row, with a comma\n3\n", said("3 documents scored"))
    upload(b'text\n"never closed\n', said("never closed"))
    assert not page.one("#download").is_displayed()
    upload("text\ncafé\n".encode("latin-1"), said("not UTF-8"))
    upload(b"a,text\n1,2,3\n", said("row 2 has 3 cells, the first row 2"))
    upload(b"text,label\n" + b"x\0y,1\n" + b"word " * 50_000 + b",2\nplum,3\n", said("2 have no label"))
    upload(b"text\n" + (b"word " * 6_000 + b"\n") * 150, said("150 documents scored"))  # more than one request holds


def test_a_long_document_gets_its_label_all_the_same(page):
    page.browser.execute_script("document.getElementById('text').value = 'apple '.repeat(10000)")
    page.one("#go").click()
    page.wait(lambda: "Too long to be explained" in page.one(".note").text)
    assert page.one(".answer").text.split()[0] == "fruit"


def test_html_in_documents_is_text(page):
    nasty = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> <b>apple</b>"
    page.classify(nasty)
    assert page.browser.title == "mpad" and not page.all(".panel script, .panel img, .panel b")
    assert "<script>" in page.one(".text").text


def test_both_themes(page):
    def colour():
        return page.browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    assert colour() == "rgb(255, 255, 255)"
    page.one("#theme").click()
    assert colour() == "rgb(13, 17, 23)"
    page.one("#theme").click()
    assert colour() == "rgb(255, 255, 255)"


def test_right_to_left_and_emoji_keep_their_places(page):
    text = "مرحبا 😀 the apple 👍🏽 saw"
    page.browser.execute_script("document.getElementById('text').value = arguments[0]", text)
    page.one("#go").click()
    page.wait(lambda: page.all(".word") and not page.one("#said").text)
    assert [word.text for word in page.all(".word")][-3:] == ["the", "apple", "saw"]


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
