"""Explanation: a label, its probability, and a weight for every part of the document."""

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Span = tuple[int, int]
DEFAULT = "gradients"  # the most faithful (docs/faithfulness.md), and its weights add up
_PHRASE_SHARE = 0.2  # of the strongest word's weight: weaker words end a phrase


def display_word(word: str) -> str:
    """Return a word without the backslash that Kim's tokenizer puts before brackets and question marks."""
    return word[1:] if len(word) == 2 and word[0] == "\\" else word


@dataclass(frozen=True)
class WordWeight:
    """Occurrence of a word, text[start:end], and its weight."""

    word: str
    start: int
    end: int
    sentence: int
    weight: float
    potential: float | None = None  # part of the weight from the linear part, if the model has one
    known: bool = True  # the word is in the vocabulary


@dataclass(frozen=True)
class EdgeWeight:
    """Edge from `source` to `target`, over all its places in the text, and its weight."""

    source: str
    target: str
    count: float  # edge weight in the graph
    spans: tuple[tuple[Span, Span], ...]  # places: (source, target), each (start, end)
    weight: float
    potential: float | None = None  # part of the weight from the linear part


@dataclass(frozen=True)
class SentenceWeight:
    """Sentence, text[start:end] from its first word to its last, and its weight."""

    start: int
    end: int
    weight: float


@dataclass(frozen=True)
class Keyword:
    """Word or phrase with the total weight of its occurrences."""

    text: str
    weight: float
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Explanation:
    """Explanation of the label of a document.

    The meaning of a weight depends on the method:

    - gradients: the part's share of the rise of the log-odds of `label` as all words, or all edges, fade in.
    - occlusion: the fall of the log-odds of `label` when the part is removed; negative if the part opposes the label.
      With `unit="word"`, the fall for the whole word, divided among its occurrences.
    - attention: the part's share of the attention; all words together have 1.
    - shapley: the part's mean effect on the log-odds over all subsets of the other words; exact, for up to 12 words.

    Attributes
    ----------
    text : str
        The document.
    label : object
        The class explained.
    predicted : object
        The predicted class; for a multi-label model, a tuple of the predicted classes.
    probabilities : dict
        Probability per class.
    method : str
        "gradients", "occlusion", "attention" or "shapley".
    words : tuple of WordWeight
        Every occurrence of a word, in text order.
    edges : tuple of EdgeWeight
        Pairs of words: the edges of the graph.
    sentences : tuple of SentenceWeight
        Sentences, in text order.
    note : str, default=""
        Remarks, such as parts that were not weighed.
    total : float, optional
        Log-odds of `label`.
    baseline : float, optional
        Log-odds of the empty document; with gradients and Shapley values, baseline + sum of the word weights = total.
    against : object, optional
        The class that `label` is compared with; total and baseline are then log p / q of the two.
    pairs : tuple of (int, int, float)
        With Shapley values: two word occurrences and their interaction, the strongest first. Negative: together they
        support the label less than the sum of their weights says.

    """

    text: str
    label: Any
    predicted: Any
    probabilities: dict[Any, float]
    method: str
    words: tuple[WordWeight, ...]
    edges: tuple[EdgeWeight, ...]
    sentences: tuple[SentenceWeight, ...]
    note: str = ""
    total: float | None = None
    baseline: float | None = None
    against: Any = None
    pairs: tuple[tuple[int, int, float], ...] = ()

    def __repr__(self) -> str:
        parts = f"{len(self.words)} words, {len(self.edges)} pairs, {len(self.sentences)} sentences"
        return f"<Explanation of {self.label!r}, probability {self.probability:.3f}, by {self.method}: {parts}>"

    @property
    def probability(self) -> float:
        """Probability of `label`."""
        return self.probabilities[self.label]

    @property
    def legend(self) -> str:
        """Meaning of the colors."""
        if self.method == "attention":
            return "blue is where it looked"
        if self.against is not None:
            return f"blue supports it, orange supports {self.against}"
        return "blue supports it, orange opposes it"

    @property
    def account(self) -> str:
        """Sum of the weights in words; empty if the method's weights do not add up."""
        if self.baseline is None or self.total is None:
            return ""
        words = sum(word.weight for word in self.words)
        gap = self.total - self.baseline - words
        rest = f", {gap:+.3f} not assigned" if abs(gap) >= 0.0005 else ""
        against = "" if self.against is None else f" against {self.against}"
        return f"log-odds{against} {self.total:+.3f}: {self.baseline:+.3f} without words, {words:+.3f} by words{rest}"

    def places(self) -> dict[str, list[int]]:
        """Return the indices in `words` of each distinct word, in text order."""
        result: dict[str, list[int]] = {}
        for place, word in enumerate(self.words):
            result.setdefault(word.word, []).append(place)
        return result

    def top_words(self, n: int = 10) -> list[WordWeight]:
        """Return the n word occurrences with the largest absolute weights."""
        return sorted(self.words, key=lambda word: -abs(word.weight))[:n]

    def top_edges(self, n: int = 10) -> list[EdgeWeight]:
        """Return the n pairs of words with the largest absolute weights."""
        return sorted(self.edges, key=lambda edge: -abs(edge.weight))[:n]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON-compatible values."""
        record = asdict(self)
        plain = {str(label): probability for label, probability in self.probabilities.items()}
        predicted = [str(p) for p in self.predicted] if isinstance(self.predicted, tuple) else str(self.predicted)
        against = None if self.against is None else str(self.against)
        return {**record, "label": str(self.label), "predicted": predicted, "probabilities": plain, "against": against}

    def keywords(self, n: int = 10) -> list[Keyword]:
        """Return the n distinct words that most support the label."""
        return _rank([(word.word, [word]) for word in self.words if any(map(str.isalnum, word.word))], n)

    def phrases(self, n: int = 5) -> list[Keyword]:
        """Return the n strongest runs of at least two words of a sentence that all support the label."""
        least = _PHRASE_SHARE * max((word.weight for word in self.words), default=0.0)
        runs: list[list[WordWeight]] = []
        for before, word in pairwise([None, *self.words]):
            assert word is not None
            if word.weight <= 0 or word.weight < least:
                continue
            follows = runs and before is not None and runs[-1][-1] is before and before.sentence == word.sentence
            runs[-1].append(word) if follows else runs.append([word])
        return _rank([(_join_words(run), run) for run in runs if len(run) > 1], n)

    def summary(self, n: int = 3) -> list[SentenceWeight]:
        """Return the n sentences that most support the label, in text order."""
        strongest = sorted(self.sentences, key=lambda sentence: -sentence.weight)[:n]
        return sorted(strongest, key=lambda sentence: sentence.start)

    def to_html(self, graph: bool = True, master: bool = False) -> str:
        """Return a self-contained HTML page, optionally with the graph of words and its master node."""
        from mpad.explain.page import to_html

        return to_html(self, graph, master)

    def to_figure(self) -> "Figure":
        """Return a matplotlib figure, to be saved with `savefig("why.svg")`."""
        from mpad.explain.figure import to_figure

        return to_figure(self)

    def show(self) -> None:
        """Print to the terminal, with words colored by weight."""
        from mpad.explain.terminal import show

        show(self)

    def _repr_html_(self) -> str:
        from mpad.explain.page import to_fragment

        return to_fragment(self)


def _join_words(run: list[WordWeight]) -> str:
    """Join words with spaces, except where the text has none (parts of "don't"; Chinese)."""
    rest = ((" " if before.end < word.start else "") + display_word(word.word) for before, word in pairwise(run))
    return display_word(run[0].word) + "".join(rest)


def _rank(runs_by_text: list[tuple[str, list[WordWeight]]], n: int) -> list[Keyword]:
    grouped: dict[str, list[list[WordWeight]]] = {}
    for text, run in runs_by_text:
        grouped.setdefault(text, []).append(run)
    ranked = [
        Keyword(
            text,
            sum(word.weight for run in runs for word in run),
            tuple((run[0].start, run[-1].end) for run in runs),
        )
        for text, runs in grouped.items()
    ]
    return sorted((one for one in ranked if one.weight > 0), key=lambda one: -one.weight)[:n]
