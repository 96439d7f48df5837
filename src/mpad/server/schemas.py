"""What goes in and what comes out, as OpenAPI shows it."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("a text holds the character NUL: take it out")
    return text


Text = Annotated[StrictStr, AfterValidator(_no_nul)]
Name = Annotated[StrictStr | None, Field(description="Which of the models; the first if not given.")]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PredictRequest(_Request):
    """One document or many."""

    texts: Annotated[list[Text] | Text, Field(description="A document, or a list of documents.")]
    model: Name = None


class Prediction(BaseModel):
    """What a model says of a document."""

    label: str = Field(description="Of many labels, all of them, with commas between.")
    labels: list[str] | None = Field(None, description="Of many labels, each of them.")
    probabilities: dict[str, float] | None = Field(description="None where the model has no probabilities.")
    unknown: float | None = Field(None, description="Share of words that the vocabulary has not; of baselines none.")


class PredictResponse(BaseModel):
    """Predictions in the order of the documents."""

    model: str
    predictions: list[Prediction]


class ExplainRequest(_Request):
    """One document to explain."""

    text: Text
    model: Name = None
    label: Annotated[StrictStr | None, Field(description="Class to explain; the predicted one if not given.")] = None
    method: Annotated[Literal["gradients", "occlusion", "attention"] | None, Field(description="How.")] = None
    without: Annotated[list[StrictInt], Field(description="Occurrences to take out first, counted from 0.")] = []


class Word(BaseModel):
    """One occurrence of a word: text[start:end], counted in characters (code points)."""

    word: str
    start: int
    end: int
    sentence: int
    weight: float
    potential: float | None = Field(description="The linear part's share of the weight, if the model has one.")
    known: bool = Field(True, description="Whether the model's vocabulary has the word.")


class Sentence(BaseModel):
    """A sentence, from its first word to its last."""

    start: int
    end: int
    weight: float


class Node(BaseModel):
    """A word of the drawn graph, at a place between 0 and 1 both ways."""

    word: str
    weight: float
    x: float
    y: float
    occurrences: list[int] = Field(description="Which of `words`.")


class Edge(BaseModel):
    """An edge of the drawn graph."""

    source: int = Field(description="Which of `nodes`.")
    target: int
    count: float
    weight: float


class ExplainResponse(BaseModel):
    """Why a document got its label, and how to draw it."""

    model: str
    label: str
    predicted: str = Field(description="Of many labels, all of them, with commas between.")
    labels: list[str] | None = Field(None, description="Of many labels, each that was predicted.")
    method: str
    probabilities: dict[str, float]
    words: list[Word]
    sentences: list[Sentence]
    nodes: list[Node]
    edges: list[Edge]
    keywords: list[str]
    phrases: list[str]
    summary: list[int] = Field(description="Which of `sentences` weigh most, in the order of the text.")
    note: str
    total: float | None = Field(None, description="Log-odds of `label`.")
    baseline: float | None = Field(None, description="Log-odds without words, where the weights by gradients start.")


class Pair(_Request):
    """An edge, by its words."""

    source: Text
    target: Text


class WhatIfRequest(_Request):
    """A document without some of its parts."""

    text: Text
    words: Annotated[list[StrictInt], Field(description="Occurrences to take out, counted from 0.")] = []
    edges: Annotated[list[Pair], Field(description="Edges to take out of the graph.")] = []
    model: Name = None


class Example(BaseModel):
    """A document to try a model on."""

    label: str
    text: str


class ModelInfo(BaseModel):
    """Facts about a model."""

    name: str
    kind: str
    classes: list[str]
    version: str = Field("", description="The mpad that wrote it.")
    digest: str = Field("", description="SHA-256 of its folder's SHA256SUMS.")
    variant: str | None = None
    steps: int | None = None
    hidden: int | None = None
    words: int | None = None
    explains: bool = False
    many: bool = Field(False, description="Whether a document has many labels, each with a probability of its own.")
    probabilities: bool = True
    megabytes: float | None = None
    card: dict[str, Any] = Field({}, description="When, on how much and with which result it was trained.")
    examples: list[Example] = []


class Info(BaseModel):
    """What is served, and how much a request may ask for."""

    version: str
    models: list[ModelInfo]
    limits: dict[str, int]
    needs_key: bool


class Health(BaseModel):
    """The process is up."""

    status: Literal["ok"]


class Ready(BaseModel):
    """Every model is loaded and answers."""

    status: Literal["ready"]


class Error(BaseModel):
    """What was wrong, in a sentence."""

    detail: str
