"""Request and response bodies, their validation and their OpenAPI schemas."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError
from starlette.requests import Request

from mpad.server.errors import HTTPProblem

# Validation errors that name a field which the client misspelled or left out.
_FIELD_ERRORS = ("missing", "extra_forbidden")
_Body = TypeVar("_Body", bound=BaseModel)


async def read_body(request: Request, schema: type[_Body]) -> _Body:
    """Return the validated request body; raise HTTPProblem with a one-line message if it is invalid."""
    try:
        return schema.model_validate_json(await request.body())
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        first = next((one for one in errors if one["type"] == "value_error"), errors[0])
        if first["type"] == "json_invalid":
            raise HTTPProblem(400, f"the body is not valid JSON in UTF-8: {first['msg'].partition(': ')[2]}") from None
        fields = {*schema.model_fields, "source", "target"}
        if first["type"] in _FIELD_ERRORS:
            fields.add(str(first["loc"][-1]))
        where = ".".join(str(part)[:100] for part in first["loc"] if part in fields or isinstance(part, int))
        message = first["msg"].removeprefix("Value error, ")
        raise HTTPProblem(422, f"{where or 'the body'}: {message[:1].lower()}{message[1:]}") from None


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("a text holds the character NUL: take it out")
    return text


Text = Annotated[StrictStr, AfterValidator(_no_nul)]
Name = Annotated[StrictStr | None, Field(description="Name of the model; the first one by default.")]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PredictRequest(_Request):
    """One document, or a list of documents."""

    texts: Annotated[list[Text] | Text, Field(description="A document, or a list of documents.")]
    model: Name = None


class Prediction(BaseModel):
    """Prediction for one document."""

    label: str = Field(description="Multi-label models: all labels, separated by commas.")
    labels: list[str] | None = Field(None, description="Multi-label models only: the list of labels.")
    probabilities: dict[str, float] | None = Field(description="Null if the model has no probabilities.")
    unknown: float | None = Field(None, description="Share of words outside the vocabulary; null for baselines.")


class PredictResponse(BaseModel):
    """Predictions in the order of the documents."""

    model: str
    predictions: list[Prediction]


class ExplainRequest(_Request):
    """Document to explain."""

    text: Text
    model: Name = None
    label: Annotated[StrictStr | None, Field(description="Class to explain; the predicted one by default.")] = None
    method: Annotated[
        Literal["gradients", "occlusion", "attention"] | None,
        Field(description="Default: gradients."),
    ] = None
    without: Annotated[list[StrictInt], Field(description="Word occurrences to remove first, counted from 0.")] = []


class Word(BaseModel):
    """Occurrence of a word: text[start:end], counted in code points."""

    word: str
    start: int
    end: int
    sentence: int
    weight: float
    potential: float | None = Field(description="Part of the weight from the linear part, if the model has one.")
    known: bool = Field(True, description="True if the word is in the vocabulary.")


class Sentence(BaseModel):
    """Sentence, from its first word to its last."""

    start: int
    end: int
    weight: float


class Node(BaseModel):
    """Node of the drawn graph: a word, at coordinates between 0 and 1."""

    word: str
    weight: float
    x: float
    y: float
    occurrences: list[int] = Field(description="Indices into `words`.")


class Edge(BaseModel):
    """Edge of the drawn graph."""

    source: int = Field(description="Index into `nodes`.")
    target: int
    count: float
    weight: float


class ExplainResponse(BaseModel):
    """Explanation of a label, with a layout for drawing the graph of words."""

    model: str
    label: str
    predicted: str = Field(description="Multi-label models: all predicted labels, separated by commas.")
    labels: list[str] | None = Field(None, description="Multi-label models only: the predicted labels.")
    method: str
    probabilities: dict[str, float]
    words: list[Word]
    sentences: list[Sentence]
    nodes: list[Node]
    edges: list[Edge]
    keywords: list[str]
    phrases: list[str]
    summary: list[int] = Field(description="Indices of the most important `sentences`, in text order.")
    note: str
    total: float | None = Field(None, description="Log-odds of `label`.")
    baseline: float | None = Field(None, description="Log-odds of the empty document: the baseline of the gradients.")


class Pair(_Request):
    """Edge, given by its two words."""

    source: Text
    target: Text


class WhatIfRequest(_Request):
    """Document with the words and edges to remove."""

    text: Text
    words: Annotated[list[StrictInt], Field(description="Word occurrences to remove, counted from 0.")] = []
    edges: Annotated[list[Pair], Field(description="Edges to remove from the graph.")] = []
    model: Name = None


class Example(BaseModel):
    """Example document of a model."""

    label: str
    text: str


class ModelInfo(BaseModel):
    """Description of a model."""

    name: str
    kind: str
    classes: list[str]
    version: str = Field("", description="Version of mpad that wrote the model.")
    digest: str = Field("", description="SHA-256 of its folder's SHA256SUMS.")
    variant: str | None = None
    steps: int | None = None
    hidden: int | None = None
    words: int | None = None
    explains: bool = False
    many: bool = Field(False, description="True for a multi-label model.")
    probabilities: bool = True
    megabytes: float | None = None
    card: dict[str, Any] = Field({}, description="Date, size and result of the training.")
    examples: list[Example] = []


class Info(BaseModel):
    """Models and limits of this server."""

    version: str
    models: list[ModelInfo]
    limits: dict[str, int]
    needs_key: bool


class Status(BaseModel):
    """Response of a running process, and once every model is loaded and responds."""

    status: Literal["ok", "ready"]


class Error(BaseModel):
    """Error message in one sentence."""

    detail: str
