"""`mpad explain`: why a document got its label; or, over a dataset, what speaks for each class."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from mpad.cli import explained_data
from mpad.cli.inputs import Force, ModelFolder, OwnTokenizer, TextColumn, remembered_columns, unlabelled
from mpad.cli.output import as_json, check_new
from mpad.files.atomic import write_file
from mpad.files.encoding import decode
from mpad.text.printable import printable

if TYPE_CHECKING:
    from mpad.explain.explanation import Explanation
    from mpad.pipeline.document_model import DocumentModel

_METHODS = ("gradients", "occlusion", "attention")
_PICTURES = (".svg", ".png", ".pdf")


class View(StrEnum):
    """How to show an explanation."""

    terminal = "terminal"
    json = "json"
    html = "html"
    keywords = "keywords"


class Unit(StrEnum):
    """What is taken out of a document as one."""

    word = "word"
    occurrence = "occurrence"
    edge = "edge"
    sentence = "sentence"


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
        Path | None,
        typer.Option("--out", "-o", help="Write to this file: .html, .json, .svg, .png, .pdf; of DATA, a folder."),
    ] = None,
    master: Annotated[bool, typer.Option("--master", help="Draw the master node too (html).")] = False,
    check: Annotated[bool, typer.Option("--check", help="Measure how far explanations can be trusted.")] = False,
    unit: Annotated[
        Unit | None,
        typer.Option(
            help="What goes at a time, by occlusion: one occurrence of a word (the default) or the word everywhere; "
            "with --check: word (the default), occurrence, edge, sentence."
        ),
    ] = None,
    corpus: Annotated[bool, typer.Option("--corpus", help="What speaks for each class, over DATA.")] = False,
    against: Annotated[
        str | None, typer.Option(help="With --corpus: other DATA, to see what has drifted from there to here.")
    ] = None,
    documents: Annotated[int, typer.Option(min=1, help="At most so many documents of DATA, drawn at random.")] = 300,
    column: TextColumn = None,
    tokenizer: OwnTokenizer = None,
    force: Force = False,
) -> None:
    """Explain one answer: words, pairs of words and sentences that speak for or against a class.

    Example: `mpad explain my-model "not a good film"`

    Example: `mpad explain my-model - --out why.html < review.txt`

    Example: `mpad explain my-model reviews.csv --out explanations`

    Example: `mpad explain my-model reviews.csv --corpus`

    Example: `mpad explain my-model reviews.csv --check --unit edge`

    --check takes words (or what --unit says) out in the order of their weights and watches the probability of the label
    fall (deletion), or puts them in and watches it rise (insertion), beside words in random order. --corpus adds
    explanations up over the documents; with --against it compares two sets of documents instead.
    """
    from mpad.errors import InputError

    taken = (unit or Unit.occurrence).value
    bulk = out is not None and not out.suffix and not (check or corpus) and _is_file(text)
    _refuse(model, text, out, label, method, together=check or corpus or bulk)
    check_new(out, force)
    remembered = remembered_columns(model)
    from mpad.explain import DEFAULT

    if bulk and out is not None:
        if out.exists() and not out.is_dir():
            raise InputError(f"{out}: is a file; name a folder")
        texts = _sample(unlabelled(text, column, remembered), documents)
        _in_bulk(model, tokenizer, texts, out, label, method or DEFAULT, taken)
        return
    _refuse_together(check, corpus, against is not None, unit is not None)
    if check or corpus:
        if out is not None or label is not None or view in (View.html, View.keywords):
            raise InputError("--check and --corpus print a table, or JSON by --format json; redirect it to keep it")
        texts = _sample(unlabelled(text, column, remembered), documents)
        loaded = _graph_model(model, tokenizer)
        if not texts:
            raise InputError(f"{text}: holds no documents")
        plain = view is View.json
        if check:
            explained_data.check(loaded, texts, method, (unit or Unit.word).value, plain)
        elif against is not None:
            explained_data.drifted(loaded, _sample(unlabelled(against, column, remembered), documents), texts, plain)
        else:
            explained_data.corpus(loaded, texts, method or DEFAULT, plain)
        return
    if text == "-":
        text = decode("standard input", sys.stdin.buffer.read())
    from mpad.explain import explain
    from mpad.pipeline.store import load_model

    with Console(stderr=True).status("explaining …"):  # shown where somebody is watching
        loaded_model = load_model(model, tokenizer=tokenizer)[0]
        explanation = explain(loaded_model, text, label, method or DEFAULT, unit=taken)
    _show(explanation, view, out, master)


def _refuse_together(check: bool, corpus: bool, against: bool, unit: bool) -> None:
    """Refuse options that do not belong together."""
    from mpad.errors import InputError

    if against and not corpus:
        raise InputError("--against compares two sets of documents: use it with --corpus")
    if check and corpus:
        raise InputError("--check and --corpus are two things: ask for one at a time")
    if corpus and unit:
        raise InputError("--corpus adds up explanations of occurrences: --unit is for --check, or for one document")


def _refuse(model: Path, text: str, out: Path | None, label: str | None, method: str | None, together: bool) -> None:
    """Refuse what cannot work, before anything that takes time is imported."""
    from mpad.errors import InputError
    from mpad.extras import require
    from mpad.registry import REGISTRY, find_kind
    from mpad.storage.model_folder import open_model, read_kind

    kind = read_kind(model)
    entry = find_kind(kind)
    if entry is None or not entry.is_network:
        can = ", ".join(name for name, entry in REGISTRY.items() if entry.explained_by)
        raise InputError(f"{model}: a '{kind}' cannot be explained; these can: {can}")
    if method is not None and method not in _METHODS:
        raise InputError(f"no method '{method}' (known: {', '.join(_METHODS)})")
    classes = [str(name) for name in open_model(model, lambda files: files.labels()).classes.tolist()]
    if label is not None and label not in classes:
        raise InputError(f"no class '{label}' to explain (known: {', '.join(classes)})")
    if out is not None and out.suffix.lower() in _PICTURES:
        require("matplotlib", extra="plots")
    if not together and _is_file(text):
        raise InputError(
            f"{text} is a file: explain its documents together by --corpus, each by --out FOLDER, or one by - < FILE"
        )


def _is_file(text: str) -> bool:
    return len(text) < 4096 and "\0" not in text and Path(text).is_file()


def _in_bulk(
    model: Path, tokenizer: str | None, texts: list[str], out: Path, label: str | None, method: str, unit: str
) -> None:
    """A page a document, all of them as JSON lines, and a page that leads to each; the folder is new, or empty."""
    from html import escape

    from mpad.cli.progress import document_bar
    from mpad.explain import explain
    from mpad.pipeline.store import load_model

    loaded = load_model(model, tokenizer=tokenizer)[0]
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    with (
        document_bar(len(texts), "explaining") as done,
        (out / "explanations.jsonl").open("w", encoding="utf-8", errors="backslashreplace") as lines,
    ):
        for number, text in enumerate(texts, start=1):
            explanation = explain(loaded, text, label, method, unit=unit)
            name = f"{number:05d}.html"
            (out / name).write_text(explanation.to_html(), encoding="utf-8", errors="backslashreplace")
            lines.write(json.dumps(explanation.to_dict()) + "\n")
            said = f"{escape(str(explanation.label))}</td><td>{explanation.probability:.3f}"
            shown = escape(" ".join(text.split())[:200])
            rows.append(f'<tr><td><a href="{name}">{number}</a></td><td>{said}</td><td>{shown}</td></tr>')
            done()
    style = "body { font: 15px/1.5 system-ui, sans-serif; color-scheme: light dark; } td { padding: .1rem .8rem 0 0; }"
    head = f'<head><meta charset="utf-8"><title>explanations</title><style>{style}</style></head>'
    page = f"<!doctype html><html lang='en'>{head}<body><table>{''.join(rows)}</table></body></html>\n"
    (out / "index.html").write_text(page, encoding="utf-8", errors="backslashreplace")
    typer.echo(f"{len(texts):,} documents explained: {out / 'index.html'}", err=True)


def _show(explanation: "Explanation", view: View | None, out: Path | None, master: bool) -> None:
    from mpad.explain.terminal import as_text

    suffix = out.suffix.lower() if out is not None else ""
    if out is not None and view is None and suffix in _PICTURES:
        _draw(explanation, out)
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
        write_file(out, content.encode("utf-8", "backslashreplace"))
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


def _draw(explanation: "Explanation", out: Path) -> None:
    """Write a picture; of letters that its font has not, say so once."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explanation.to_figure().savefig(out)
    glyphs = [str(one.message).startswith("Glyph ") for one in caught]
    for one, is_glyph in zip(caught, glyphs, strict=True):
        if not is_glyph:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if any(glyphs):
        typer.echo("letters that the picture's font does not have are drawn as boxes; .html shows them all", err=True)
