"""`mpad explain`: explanations of single documents, or of a dataset."""

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from mpad.cli.inputs import Force, ModelFolder, OwnTokenizer, TextColumn, read_texts, remembered_columns
from mpad.cli.output import Format, as_json, check_new, print_rows
from mpad.files.atomic import write_file
from mpad.files.encoding import decode
from mpad.text.printable import printable

if TYPE_CHECKING:
    from mpad.explain.explanation import Explanation
    from mpad.inference.pipeline import Pipeline

_PICTURES = (".svg", ".png", ".pdf")


class View(StrEnum):
    """Form of an explanation."""

    terminal = "terminal"
    json = "json"
    html = "html"
    keywords = "keywords"


class Unit(StrEnum):
    """Part of a document that is removed at a time."""

    word = "word"
    occurrence = "occurrence"
    edge = "edge"
    sentence = "sentence"


def run(
    model: ModelFolder,
    text: Annotated[
        str,
        typer.Argument(help="Document, or - for standard input; with --check, --corpus or --out FOLDER, DATA."),
    ],
    label: Annotated[str | None, typer.Option(help="Class to explain; by default the predicted one.")] = None,
    method: Annotated[
        str | None, typer.Option(help="gradients (default), occlusion or attention; with --check, all by default.")
    ] = None,
    view: Annotated[
        View | None, typer.Option("--format", "-f", help="Output format; by default terminal, or the suffix of --out.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write: .html, .json, .svg, .png or .pdf; for DATA, a folder."),
    ] = None,
    master: Annotated[bool, typer.Option("--master", help="Draw the master node (HTML only).")] = False,
    check: Annotated[bool, typer.Option("--check", help="Measure the faithfulness of explanations on DATA.")] = False,
    unit: Annotated[
        Unit | None,
        typer.Option(
            help="Part that occlusion removes at a time: occurrence (default) or word; "
            "with --check, the parts to rank: word (default), occurrence, edge or sentence."
        ),
    ] = None,
    corpus: Annotated[bool, typer.Option("--corpus", help="Print the top features of each class over DATA.")] = False,
    against: Annotated[
        str | None, typer.Option(help="With --corpus: print the drift from these documents to DATA instead.")
    ] = None,
    documents: Annotated[
        int, typer.Option(min=1, help="Maximal number of documents of DATA, sampled at random.")
    ] = 300,
    column: TextColumn = None,
    tokenizer: OwnTokenizer = None,
    force: Force = False,
) -> None:
    """Explain a prediction: the words, word pairs and sentences that support or oppose a class.

    Example: `mpad explain my-model "not a good film"`

    Example: `mpad explain my-model - --out why.html < review.txt`

    Example: `mpad explain my-model reviews.csv --out explanations`

    Example: `mpad explain my-model reviews.csv --corpus`

    Example: `mpad explain my-model reviews.csv --check --unit edge`

    --check removes words, or other parts by --unit, in the order of their weights and measures how fast the probability
    of the label falls (deletion), then adds them and measures how fast it rises (insertion), compared with a random
    order. --corpus sums up explanations over the documents; with --against it compares two sets of documents.
    """
    from mpad.errors import InputError

    removed = (unit or Unit.occurrence).value
    into_folder = out is not None and not out.suffix and not (check or corpus) and _is_file(text)
    _validate(model, text, out, label, method, over_data=check or corpus or into_folder)
    check_new(out, force)
    remembered = remembered_columns(model)
    from mpad.explain import DEFAULT

    if into_folder and out is not None:
        if out.exists() and not out.is_dir():
            raise InputError(f"{out}: is a file; name a folder")
        texts = _sample(read_texts(text, column, remembered), documents)
        _explain_into_folder(model, tokenizer, texts, out, label, method or DEFAULT, removed)
        return
    _check_options(check, corpus, against is not None, unit is not None)
    if check or corpus:
        if out is not None or label is not None or view in (View.html, View.keywords):
            raise InputError("--check and --corpus print a table, or JSON by --format json; redirect it to keep it")
        texts = _sample(read_texts(text, column, remembered), documents)
        loaded = _load_graph_model(model, tokenizer)
        if not texts:
            raise InputError(f"{text}: holds no documents")
        plain = view is View.json
        if check:
            _print_faithfulness(loaded, texts, method, (unit or Unit.word).value, plain)
        elif against is not None:
            _print_drift(loaded, _sample(read_texts(against, column, remembered), documents), texts, plain)
        else:
            _print_class_features(loaded, texts, method or DEFAULT, plain)
        return
    if text == "-":
        text = decode("standard input", sys.stdin.buffer.read())
    from mpad.estimator.store import load_model
    from mpad.explain import explain

    with Console(stderr=True).status("explaining …"):  # only on a terminal
        loaded_model = load_model(model, tokenizer=tokenizer)[0]
        explanation = explain(loaded_model, text, label, method or DEFAULT, unit=removed)
    _write_explanation(explanation, view, out, master)


def _check_options(check: bool, corpus: bool, against: bool, unit: bool) -> None:
    """Raise InputError for options that exclude each other."""
    from mpad.errors import InputError

    if against and not corpus:
        raise InputError("--against compares two sets of documents: use it with --corpus")
    if check and corpus:
        raise InputError("--check and --corpus exclude each other: use one at a time")
    if corpus and unit:
        raise InputError("--corpus adds up explanations of occurrences: --unit is for --check, or for one document")


def _validate(model: Path, text: str, out: Path | None, label: str | None, method: str | None, over_data: bool) -> None:
    """Validate arguments before loading the model."""
    from mpad.errors import InputError
    from mpad.extras import require
    from mpad.registry import METHODS, REGISTRY, find_kind
    from mpad.storage.model_folder import open_model, read_kind

    kind = read_kind(model)
    entry = find_kind(kind)
    if entry is None or not entry.is_network:
        supported = ", ".join(name for name, entry in REGISTRY.items() if entry.explained_by)
        raise InputError(f"{model}: a '{kind}' cannot be explained; these can: {supported}")
    if method is not None and method not in METHODS:
        raise InputError(f"no method '{method}' (known: {', '.join(METHODS)})")
    classes = [str(name) for name in open_model(model, lambda files: files.labels()).classes.tolist()]
    if label is not None and label not in classes:
        raise InputError(f"no class '{label}' to explain (known: {', '.join(classes)})")
    if out is not None and out.suffix.lower() in _PICTURES:
        require("matplotlib", extra="plots")
    if not over_data and _is_file(text):
        raise InputError(
            f"{text} is a file: explain its documents together by --corpus, each by --out FOLDER, or one by - < FILE"
        )


def _is_file(text: str) -> bool:
    return len(text) < 4096 and "\0" not in text and Path(text).is_file()


def _explain_into_folder(
    model: Path, tokenizer: str | None, texts: list[str], out: Path, label: str | None, method: str, unit: str
) -> None:
    """Write one page per document, all explanations as JSON lines, and an index page."""
    from html import escape

    from mpad.cli.progress import document_bar
    from mpad.estimator.store import load_model
    from mpad.explain import explain

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
            result = f"{escape(str(explanation.label))}</td><td>{explanation.probability:.3f}"
            excerpt = escape(" ".join(text.split())[:200])
            rows.append(f'<tr><td><a href="{name}">{number}</a></td><td>{result}</td><td>{excerpt}</td></tr>')
            done()
    style = "body { font: 15px/1.5 system-ui, sans-serif; color-scheme: light dark; } td { padding: .1rem .8rem 0 0; }"
    head = f'<head><meta charset="utf-8"><title>explanations</title><style>{style}</style></head>'
    page = f"<!doctype html><html lang='en'>{head}<body><table>{''.join(rows)}</table></body></html>\n"
    (out / "index.html").write_text(page, encoding="utf-8", errors="backslashreplace")
    typer.echo(f"{len(texts):,} documents explained: {out / 'index.html'}", err=True)


def _write_explanation(explanation: "Explanation", view: View | None, out: Path | None, master: bool) -> None:
    from mpad.explain.terminal import as_text

    suffix = out.suffix.lower() if out is not None else ""
    if out is not None and view is None and suffix in _PICTURES:
        _save_picture(explanation, out)
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
        content = _format_keywords(explanation)
    else:
        content = as_text(explanation)
    if out is None:
        sys.stdout.write(content)
    else:
        write_file(out, content.encode("utf-8", "backslashreplace"))
        typer.echo(f"written to {out}", err=True)


def _format_keywords(explanation: "Explanation") -> str:
    """Return keywords, phrases and, for several sentences, a summary, as tab-separated lines."""
    lines = [f"keyword\t{one.weight:+.4f}\t{one.text}" for one in explanation.keywords()]
    lines += [f"phrase\t{one.weight:+.4f}\t{one.text}" for one in explanation.phrases()]
    if len(explanation.sentences) > 1:
        for one in explanation.summary():
            text = " ".join(explanation.text[one.start : one.end].split())
            lines.append(f"sentence\t{one.weight:+.4f}\t{text}")
    return "".join(f"{printable(line)}\n" for line in lines)


def _load_graph_model(folder: Path, tokenizer: str | None) -> "Pipeline":
    from mpad.errors import InputError
    from mpad.estimator.store import load_model

    loaded, _ = load_model(folder, tokenizer=tokenizer)
    if loaded.kind != "mpad":
        raise InputError(f"{folder}: a '{loaded.kind}' has no graph of words: --check and --corpus need an mpad model")
    return loaded


def _sample(texts: list[str], most: int) -> list[str]:
    import random

    return texts if len(texts) <= most else random.Random(0).sample(texts, most)


def _save_picture(explanation: "Explanation", out: Path) -> None:
    """Write a picture, with one warning for all letters missing from the font."""
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


def _print_faithfulness(model: "Pipeline", texts: list[str], method: str | None, unit: str, plain: bool) -> None:
    """Print the faithfulness of explanations, by every method or by one."""
    from mpad.cli.progress import document_bar
    from mpad.explain.faithfulness import RANDOM, best, measure
    from mpad.explain.pairs import pair_share
    from mpad.registry import METHODS

    with document_bar(len(texts), "explaining") as done:
        scores = measure(model, texts, [method] if method else METHODS, [unit], done=done)
    first = best(scores)
    if plain:
        typer.echo(as_json([asdict(one) for one in scores]))
        return

    def pm(value: float, error: float) -> str:
        return f"{value:.3f} ± {error:.3f}"

    rows = [
        [
            one.method,
            pm(one.deletion, one.deletion_error),
            pm(one.insertion, one.insertion_error),
            "" if one.method == RANDOM else pm(one.gain, one.gain_error),
            "" if one.method in (RANDOM, first.method) else pm(*first.lead(one)),
            f"{1000 * one.seconds:.0f}" if one.seconds else "",
        ]
        for one in scores
    ]
    areas = ["deletion (lower)", "insertion (higher)", "gain over random", "behind the best"]
    setting = f"by {unit}, {scores[0].documents:,} documents, ± 95 %"
    typer.echo(f"areas under the curve of the label's probability, {setting}")
    print_rows(["method", *areas, "CPU ms per document"], rows, Format.table)
    typer.echo(f"most faithful here: {first.method}")
    if unit == "edge" and not model.labels.multilabel:
        share = pair_share(model, texts)
        linear = "" if share.linear is None else f" and are {share.linear:.0%} of its linear part"
        typer.echo(
            f"pairs of words carry {share.model:.0%} of the labels' lead over runners-up{linear}; "
            f"without them {share.changed:.0%} of the labels change"
        )


def _print_class_features(model: "Pipeline", texts: list[str], method: str, plain: bool) -> None:
    """Print the top features of each class."""
    from mpad.cli.progress import document_bar
    from mpad.explain.corpus import class_features

    with document_bar(len(texts), "explaining") as done:
        features = class_features(model, texts, method, done=done)
    if plain:
        typer.echo(as_json([{**asdict(one), "label": str(one.label)} for one in features]))
        return
    for one in features:
        typer.echo(f"\n{printable(str(one.label))}: {one.documents:,} documents")
        rows = [[row.text, row.weight, row.documents, row.example] for row in (*one.words, *one.edges)]
        if rows:
            print_rows(["word or pair", "weight per document", "documents", "example"], rows, Format.table)


def _print_drift(model: "Pipeline", before: list[str], now: list[str], plain: bool) -> None:
    """Print the differences between two sets of documents."""
    from mpad.explain.drift import drift

    result = drift(model, before, now)
    if plain:
        typer.echo(as_json([asdict(one) for one in result]))
        return
    rows = [
        [one.what, one.first, one.second, f"{one.difference:+.4f} ± {one.error:.4f}", "*" if one.clear else ""]
        for one in result
    ]
    print_rows(
        [f"mean of {len(before):,} and {len(now):,} documents", "before", "now", "difference", ""], rows, Format.table
    )
    typer.echo("* the 95 % interval of the difference excludes zero")
