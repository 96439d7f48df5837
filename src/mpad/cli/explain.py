"""`mpad explain`: why a document got its label; or, over a dataset, what speaks for each class."""

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from mpad.cli.inputs import ModelFolder, OwnTokenizer, unlabelled
from mpad.cli.output import Format, as_json, print_rows
from mpad.io.encoding import decode
from mpad.text.printable import printable

if TYPE_CHECKING:
    from mpad.explain.explanation import Explanation
    from mpad.pipeline.document_model import DocumentModel

_PICTURES = (".svg", ".png", ".pdf")


class View(StrEnum):
    """How to show an explanation."""

    terminal = "terminal"
    json = "json"
    html = "html"
    keywords = "keywords"


def run(
    model: ModelFolder,
    text: Annotated[str, typer.Argument(help="The document, or - for standard input; DATA with --check or --corpus.")],
    label: Annotated[str | None, typer.Option(help="Class to explain. Default: the predicted one.")] = None,
    method: Annotated[
        str | None, typer.Option(help="gradients, occlusion or attention; gradients if not given.")
    ] = None,
    view: Annotated[
        View | None, typer.Option("--format", "-f", help="How to show it. Default: terminal, or by the name of --out.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write to this file instead: .html, .json, .svg, .png, .pdf.")
    ] = None,
    master: Annotated[bool, typer.Option("--master", help="Draw the master node too (html).")] = False,
    check: Annotated[bool, typer.Option("--check", help="Measure how far explanations can be trusted.")] = False,
    corpus: Annotated[bool, typer.Option("--corpus", help="What speaks for each class, over DATA.")] = False,
    against: Annotated[
        str | None, typer.Option(help="With --corpus: other DATA, to see what has drifted from there to here.")
    ] = None,
    documents: Annotated[int, typer.Option(min=1, help="At most so many documents of DATA, drawn at random.")] = 300,
    column: Annotated[str | None, typer.Option("--text", help="Column of the text in DATA.")] = None,
    tokenizer: OwnTokenizer = None,
) -> None:
    """Explain one answer: words, pairs of words and sentences that speak for or against a class.

    Example: `mpad explain my-model "not a good film"`

    Example: `mpad explain my-model - --out why.html < review.txt`

    Example: `mpad explain my-model reviews.csv --corpus`

    Example: `mpad explain my-model reviews.csv --check`

    --check takes words out in the order of their weights and watches the probability of the label fall (deletion), or
    puts them in and watches it rise (insertion), beside words in random order. --corpus adds explanations up over
    the documents; with --against it compares two sets of documents instead.
    """
    from mpad.errors import InputError
    from mpad.explain import DEFAULT

    _refuse(model, text, out, together=check or corpus)
    if against is not None and not corpus:
        raise InputError("--against compares two sets of documents: use it with --corpus")
    if check and corpus:
        raise InputError("--check and --corpus are two things: ask for one at a time")
    if check or corpus:
        if out is not None or label is not None or view in (View.html, View.keywords):
            raise InputError("--check and --corpus print a table, or JSON by --format json; redirect it to keep it")
        loaded = _graph_model(model, tokenizer)
        texts = _sample(unlabelled(text, column), documents)
        if not texts:
            raise InputError(f"{text}: holds no documents")
        if check:
            _check(loaded, texts, [method] if method else None, view)
        elif against is not None:
            _drift(loaded, _sample(unlabelled(against, column), documents), texts, view)
        else:
            _corpus(loaded, texts, method or DEFAULT, view)
        return
    if text == "-":
        text = decode("standard input", sys.stdin.buffer.read())
    from mpad.explain import explain
    from mpad.pipeline.store import load_model

    with Console(stderr=True).status("explaining …"):  # shown where somebody is watching
        explanation = explain(load_model(model, tokenizer=tokenizer)[0], text, label, method or DEFAULT)
    _show(explanation, view, out, master)


def _refuse(model: Path, text: str, out: Path | None, together: bool) -> None:
    """Say at once what cannot come to an end."""
    from mpad.errors import InputError
    from mpad.extras import require
    from mpad.registry import REGISTRY, find_kind
    from mpad.storage.model_folder import read_kind

    kind = read_kind(model)
    entry = find_kind(kind)
    if entry is None or not entry.is_network:
        can = ", ".join(name for name, entry in REGISTRY.items() if entry.explained_by)
        raise InputError(f"{model}: a '{kind}' cannot be explained; these can: {can}")
    if out is not None and out.suffix.lower() in _PICTURES:
        require("matplotlib", extra="plots")
    if not together and len(text) < 4096 and "\0" not in text and Path(text).is_file():
        raise InputError(f"{text} is a file: explain its documents together by --corpus, or one by - < FILE")


def _show(explanation: "Explanation", view: View | None, out: Path | None, master: bool) -> None:
    from mpad.explain.terminal import as_text

    suffix = out.suffix.lower() if out is not None else ""
    if out is not None and view is None and suffix in _PICTURES:
        explanation.to_figure().savefig(out)
        typer.echo(f"written to {out}", err=True)
        return
    if view is None:
        view = {".html": View.html, ".htm": View.html, ".json": View.json}.get(suffix, View.terminal)
    if view is View.terminal and out is None:
        explanation.show()
        return
    if view is View.html:
        content = explanation.to_html(master=master)
    elif view is View.json:
        content = as_json(explanation.to_dict()) + "\n"
    elif view is View.keywords:
        content = _keywords(explanation)
    else:
        content = as_text(explanation)
    if out is None:
        sys.stdout.write(content)
    else:
        out.write_text(content, encoding="utf-8", errors="backslashreplace")
        typer.echo(f"written to {out}", err=True)


def _keywords(explanation: "Explanation") -> str:
    """Keywords, phrases and, of several sentences, a summary; a line each, with tabs between."""
    lines = [f"keyword\t{one.weight:+.4f}\t{one.text}" for one in explanation.keywords()]
    lines += [f"phrase\t{one.weight:+.4f}\t{one.text}" for one in explanation.phrases()]
    if len(explanation.sentences) > 1:
        for one in explanation.summary():
            said = " ".join(explanation.text[one.start : one.end].split())
            lines.append(f"sentence\t{one.weight:+.4f}\t{said}")
    return "".join(f"{printable(line)}\n" for line in lines)


def _graph_model(folder: Path, tokenizer: str | None) -> "DocumentModel":
    from mpad.errors import InputError
    from mpad.pipeline.document_model import DocumentModel
    from mpad.pipeline.store import load_model

    loaded, _ = load_model(folder, tokenizer=tokenizer)
    if not isinstance(loaded, DocumentModel):
        raise InputError(f"{folder}: a '{loaded.kind}' has no graph of words: --check and --corpus need an mpad model")
    return loaded


def _sample(texts: list[str], most: int) -> list[str]:
    import random

    return texts if len(texts) <= most else random.Random(0).sample(texts, most)


def _check(model: "DocumentModel", texts: list[str], methods: list[str] | None, view: View | None) -> None:
    from mpad.cli.progress import document_bar
    from mpad.explain.faithfulness import RANDOM, best, measure
    from mpad.explain.methods import METHODS, check_method

    for method in methods or ():
        check_method(method)
    with document_bar(len(texts), "explaining") as done:
        result = measure(model, texts, methods or METHODS, done=done)
    if view is View.json:
        typer.echo(as_json([asdict(one) for one in result]))
        return

    def pm(value: float, error: float) -> str:
        return f"{value:.3f} ± {error:.3f}"

    rows = [
        [
            one.method,
            pm(one.deletion, one.deletion_error),
            pm(one.insertion, one.insertion_error),
            "" if one.method == RANDOM else pm(one.gain, one.gain_error),
            f"{1000 * one.seconds:.0f}" if one.seconds else "",
        ]
        for one in result
    ]
    columns = ["method", "deletion (lower)", "insertion (higher)", "gain over random", "ms a document"]
    typer.echo(f"areas under the curve of the label's probability, {result[0].documents:,} documents, ± 95 %")
    print_rows(columns, rows, Format.table)
    typer.echo(f"most faithful here: {best(result).method}")


def _corpus(model: "DocumentModel", texts: list[str], method: str, view: View | None) -> None:
    from mpad.cli.progress import document_bar
    from mpad.explain.corpus import corpus_view

    with document_bar(len(texts), "explaining") as done:
        result = corpus_view(model, texts, method, done=done)
    if view is View.json:
        plain: list[dict[str, Any]] = [{**asdict(one), "label": str(one.label)} for one in result]
        typer.echo(as_json(plain))
        return
    for one in result:
        typer.echo(f"\n{printable(str(one.label))}: {one.documents:,} documents")
        rows = [[t.text, t.weight, t.documents, t.example] for t in (*one.words, *one.edges)]
        if rows:
            print_rows(["word or pair", "weight a document", "documents", "example"], rows, Format.table)


def _drift(model: "DocumentModel", before: list[str], now: list[str], view: View | None) -> None:
    from mpad.explain.drift import drift

    result = drift(model, before, now)
    if view is View.json:
        typer.echo(as_json([asdict(one) for one in result]))
        return
    rows = [
        [one.what, one.first, one.second, f"{one.difference:+.4f} ± {one.error:.4f}", "*" if one.clear else ""]
        for one in result
    ]
    print_rows(
        [f"mean of {len(before):,} and {len(now):,} documents", "there", "here", "difference", ""], rows, Format.table
    )
    typer.echo("* the 95 % interval of the difference excludes zero")
