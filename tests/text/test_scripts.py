"""Ten scripts and emoji: words stay whole or are cut as they should be, and a model learns from them."""

import numpy as np
import pytest

from mpad import MPADClassifier
from mpad.text.tokenizer import as_tokenizer

# Of each script a few ways to praise and to blame, and words that stand in both.
TEXTS = {
    "German": (["schönes Gerät", "großartig verpackt", "überzeugend"], ["übel", "hässlich gebaut", "enttäuschend für"]),
    "Vietnamese": (["rất đẹp", "tuyệt vời"], ["quá tệ", "thất vọng"]),
    "Turkish": (["çok güzel", "şahane ürün"], ["berbat iş", "kötü çıktı"]),
    "Greek": (["πολύ καλό", "υπέροχο"], ["απαίσιο", "πολύ κακό"]),
    "Russian": (["очень хорошо", "прекрасный звук"], ["ужасно", "плохой звук"]),
    "Arabic": (["رائع جدا", "ممتاز"], ["سيئ جدا", "رديء"]),
    "Hebrew": (["מצוין ויפה", "נהדר"], ["גרוע מאוד", "נורא"]),
    "Hindi": (["बहुत अच्छा", "शानदार"], ["बहुत बुरा", "घटिया"]),
    "Thai": (["ดีมาก", "สวยงาม"], ["แย่มาก", "เสียเร็ว"]),
    "Chinese": (["非常好", "很漂亮"], ["非常差", "坏了"]),
    "Japanese": (["とても良い", "すばらしい"], ["ひどい品", "こわれた"]),
    "Korean": (["정말 좋아요", "훌륭해요"], ["정말 나빠요", "최악이에요"]),
    "emoji": (["👍🏽 nice", "❤️ it"], ["👎 it", "💔 nice"]),
}


def corpus(script, n, seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(2, size=n)
    filler = ["1", "2", "3", "4"]
    return [
        f"{generator.choice(filler)} {generator.choice(TEXTS[script][k])} {generator.choice(filler)}" for k in labels
    ], labels


@pytest.mark.parametrize("script", TEXTS)
def test_a_model_learns_from_every_script(script):
    options = {"max_epochs": 8, "hidden": 16, "vectors": None, "device": "cpu", "random_state": 0}
    model = MPADClassifier(**options).fit(*corpus(script, 120, 0))
    assert model.model_.tokenizer.name == "unicode-punctuation"
    texts, labels = corpus(script, 60, 1)
    assert model.score(texts, labels) == 1.0
    explained = model.explain(texts[0])
    assert [texts[0][word.start : word.end] for word in explained.words], "words are places in the text"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schönes Gerät", ["schönes", "gerät"]),
        ("SCHO\u0308NES", ["schönes"]),  # an accent written apart
        ("l’homme d'été", ["l'homme", "d'été"]),
        ("非常好！", ["非", "常", "好", "！"]),
        ("とても良い", ["と", "て", "も", "良", "い"]),
        ("ดีมาก", ["ดี", "ม", "า", "ก"]),
        ("बहुत अच्छा", ["बहुत", "अच्छा"]),
        ("정말 좋아요", ["정말", "좋아요"]),
        ("I ❤️ it ❤", ["i", "❤", "it", "❤"]),
        ("👍🏽👩‍💻🇩🇪🇫🇷", ["👍🏽", "👩‍💻", "🇩🇪", "🇫🇷"]),
        ("مرحبا بكم", ["مرحبا", "بكم"]),
    ],
)
def test_words_of_every_script(text, words):
    assert as_tokenizer("auto", [text]).words(text) == words


def test_auto_keeps_the_papers_tokenizer_for_english():
    english = ["The camera isn't good.", "I like it (a lot)!"] * 200
    assert as_tokenizer("auto", english).name == "kim"
    assert as_tokenizer("auto", [*english, "a café in Paris – with “quotes”"]).name == "kim", "a name here and there"
    assert as_tokenizer("auto", [*english, *["très agréable, déjà vu"] * 60]).name == "unicode-punctuation"
    assert as_tokenizer("auto", [*english, *["good 👍"] * 20]).name == "unicode-punctuation"
    assert as_tokenizer("auto", []).name == "kim"
