"""What an explanation is: a label, its probability, and a weight for every part of the document."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mpad.explain.keywords import Keyword

Span = tuple[int, int]
DEFAULT = "gradients"  # none is more faithful (docs/faithfulness.md), and its weights add up


def shown(word: str) -> str:
    """A word as people write it: Kim's tokenizer has a backslash before brackets and question marks."""
    return word[1:] if len(word) == 2 and word[0] == "\\" else word


@dataclass(frozen=True)
class WordWeight:
    """One occurrence of a word: text[start:end]."""

    word: str
    start: int
    end: int
    sentence: int
    weight: float
    potential: float | None = None  # the linear part's share of the weight, if the model has one
    known: bool = True  # whether the model's vocabulary has the word


@dataclass(frozen=True)
class EdgeWeight:
    """One edge of the graph of words: `source`, then `target`, wherever they stand."""

    source: str
    target: str
    count: float  # weight of the edge in the graph
    spans: tuple[tuple[Span, Span], ...]  # where: (source, target), each (start, end)
    weight: float
    potential: float | None = None  # what the linear part adds of the weight


@dataclass(frozen=True)
class SentenceWeight:
    """One sentence, from its first word to its last: text[start:end]."""

    start: int
    end: int
    weight: float


@dataclass(frozen=True)
class Explanation:
    """Why a document got its label.

    What a weight means depends on the method. By occlusion: how far the log-odds of `label` fall when the part is
    taken out (with `unit="word"`, an occurrence's share of its word's fall); negative where the part spoke against the
    label. By gradients: its share of how far they rise while all words, or all edges, fade in. By attention: the share
    of the network's attention, all words together 1.
    """

    text: str
    label: Any  # the class explained
    predicted: Any  # the class the network chooses (of many labels, those it chooses)
    probabilities: dict[Any, float]
    method: str
    words: tuple[WordWeight, ...]
    edges: tuple[EdgeWeight, ...]
    sentences: tuple[SentenceWeight, ...]
    note: str = ""  # what was left out, if anything
    total: float | None = None  # log-odds of `label`
    baseline: float | None = None  # log-odds without words; by gradients, baseline + sum of word weights = total

    def __repr__(self) -> str:
        parts = f"{len(self.words)} words, {len(self.edges)} pairs, {len(self.sentences)} sentences"
        return f"<Explanation of {self.label!r}, probability {self.probability:.3f}, by {self.method}: {parts}>"

    @property
    def probability(self) -> float:
        """Probability of the class explained."""
        return self.probabilities[self.label]

    @property
    def legend(self) -> str:
        """What the colours mean."""
        return "blue is where it looked" if self.method == "attention" else "blue supports it, orange opposes it"

    @property
    def account(self) -> str:
        """The sum behind the answer, in words; empty if the method's weights do not add up."""
        if self.baseline is None or self.total is None:
            return ""
        words = sum(word.weight for word in self.words)
        rest = self.total - self.baseline - words
        left = f", {rest:+.3f} not assigned" if abs(rest) >= 0.0005 else ""
        return f"log-odds {self.total:+.3f}: {self.baseline:+.3f} without words, {words:+.3f} by words{left}"

    def places(self) -> dict[str, list[int]]:
        """Each distinct word, in the order of the text, and which of `words` are its occurrences."""
        result: dict[str, list[int]] = {}
        for place, word in enumerate(self.words):
            result.setdefault(word.word, []).append(place)
        return result

    def top_words(self, n: int = 10) -> list[WordWeight]:
        """The occurrences that weigh most, for or against."""
        return sorted(self.words, key=lambda word: -abs(word.weight))[:n]

    def top_edges(self, n: int = 10) -> list[EdgeWeight]:
        """The pairs of words that weigh most, for or against."""
        return sorted(self.edges, key=lambda edge: -abs(edge.weight))[:n]

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, as JSON can hold them."""
        record = asdict(self)
        plain = {str(label): probability for label, probability in self.probabilities.items()}
        predicted = [str(p) for p in self.predicted] if isinstance(self.predicted, tuple) else str(self.predicted)
        return {**record, "label": str(self.label), "predicted": predicted, "probabilities": plain}

    def keywords(self, n: int = 10) -> "list[Keyword]":
        """The distinct words that speak most for the label."""
        from mpad.explain.keywords import keywords

        return keywords(self, n)

    def phrases(self, n: int = 5) -> "list[Keyword]":
        """Runs of neighbouring words that all speak for the label."""
        from mpad.explain.keywords import phrases

        return phrases(self, n)

    def summary(self, n: int = 3) -> list[SentenceWeight]:
        """The sentences that weigh most, in the order of the text."""
        from mpad.explain.keywords import summary

        return summary(self, n)

    def to_html(self, graph: bool = True, master: bool = False) -> str:
        """Give a self-contained page, with the graph of words, and its master node where asked for."""
        from mpad.explain.page import to_html

        return to_html(self, graph, master)

    def to_figure(self) -> "Figure":
        """Give a matplotlib figure, for papers: `savefig("why.svg")`."""
        from mpad.explain.figure import to_figure

        return to_figure(self)

    def show(self) -> None:
        """Print to the terminal, words coloured by weight."""
        from mpad.explain.terminal import show

        show(self)

    def _repr_html_(self) -> str:
        from mpad.explain.page import to_fragment

        return to_fragment(self)
