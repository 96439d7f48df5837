"""`mpad explain`: explanations of single documents, or of a dataset."""

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from typer import Argument, Option

from mpad.cli.inputs import Force, ModelFolder, OwnTokenizer, Reader, TextColumn
from mpad.cli.output import as_json, check_new, print_json, print_rows
from mpad.cli.progress import progress_bar, track
from mpad.errors import InputError
from mpad.extras import require
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
        Argument(help="Document, or - for standard input; with --check, --corpus or --out FOLDER, DATA."),
    ],
    label: Annotated[str | None, Option(help="Class to explain; by default the predicted one.")] = None,
    method: Annotated[
        str | None,
        Option(
            help="gradients (default), occlusion, attention, or shapley (exact, up to 12 words); with --check, all but "
            "shapley by default."
        ),
    ] = None,
    view: Annotated[
        View | None, Option("--format", "-f", help="Output format; by default terminal, or the suffix of --out.")
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", "-o", help="File to write: .html, .json, .svg, .png or .pdf; for DATA, a folder."),
    ] = None,
    master: Annotated[bool, Option("--master", help="Draw the master node (HTML only).")] = False,
    check: Annotated[bool, Option("--check", help="Measure the faithfulness of explanations on DATA.")] = False,
    unit: Annotated[
        Unit | None,
        Option(
            help="Part that occlusion removes at a time: occurrence (default) or word; "
            "with --check, the parts to rank: word (default), occurrence, edge or sentence."
        ),
    ] = None,
    corpus: Annotated[bool, Option("--corpus", help="Print the top features of each class over DATA.")] = False,
    against: Annotated[
        str | None,
        Option(help="Class to explain against: why LABEL and not this one. With --corpus: other DATA, for drift."),
    ] = None,
    change: Annotated[bool, Option("--change", help="Print the fewest words whose removal changes the label.")] = False,
    documents: Annotated[int, Option(min=1, help="Maximal number of documents of DATA, sampled at random.")] = 300,
    column: TextColumn = None,
    tokenizer: OwnTokenizer = None,
    force: Force = False,
) -> None:
    """Explain a prediction: the words, word pairs and sentences that support or oppose a class.

    Example: `mpad explain my-model "not a good film"`

    Example: `mpad explain my-model - --out why.html < review.txt`

    Example: `mpad explain my-model "not a good film" --against positive`

    Example: `mpad explain my-model "not a good film" --change`

    Example: `mpad explain my-model reviews.csv --out explanations`

    Example: `mpad explain my-model reviews.csv --corpus`

    Example: `mpad explain my-model reviews.csv --check --unit edge`

    --check removes words, or other parts by --unit, in the order of their weights and measures how fast the probability
    of the label falls (deletion), then adds them and measures how fast it rises (insertion), compared with a random
    order. --corpus sums up explanations over the documents; with --against it compares two sets of documents.
    """
    over_data = check or corpus
    into_folder = out is not None and not out.suffix and not over_data and _is_file(text)
    _check_options(check, corpus, unit)
    if change and (over_data or into_folder or out is not None or method is not None):
        raise InputError("--change is for one document, and prints a line: leave out other options of output")
    if over_data and (out is not None or label is not None or view in (View.html, View.keywords)):
        raise InputError("--check and --corpus print a table, or JSON by --format json; redirect it to keep it")
    _check_model(model, label, None if corpus else against, method, needs_graph=over_data or change)
    if _is_file(text) and not over_data and not into_folder:
        raise InputError(
            f"{text} is a file: explain its documents together by --corpus, each by --out FOLDER, or one by - < FILE"
        )
    check_new(out, force)
    if out is not None and out.suffix.lower() in _PICTURES:
        require("matplotlib", extra="plots")
    reader = Reader.of(column, model=model)
    texts = _sample(reader.texts(text), documents) if over_data or into_folder else [_read_text(text)]
    if not texts:
        raise InputError(f"{text}: holds no documents")
    earlier = _sample(reader.texts(against), documents) if corpus and against is not None else None
    from mpad.estimator.store import load_model

    loaded = load_model(model, tokenizer=tokenizer)[0]
    if over_data:
        _explain_data(loaded, texts, earlier, check, method, unit, view is View.json)
    elif change:
        _print_change(loaded, texts[0], view is View.json)
    else:
        _explain_texts(loaded, texts, label, method, unit, against, view, out, into_folder, master)


def _read_text(text: str) -> str:
    return decode("standard input", sys.stdin.buffer.read()) if text == "-" else text


def _explain_data(
    model: "Pipeline",
    texts: list[str],
    earlier: list[str] | None,
    check: bool,
    method: str | None,
    unit: Unit | None,
    plain: bool,
) -> None:
    from mpad.explain import DEFAULT

    if check:
        _print_faithfulness(model, texts, method, (unit or Unit.word).value, plain)
    elif earlier is not None:
        _print_drift(model, earlier, texts, plain)
    else:
        _print_class_features(model, texts, method or DEFAULT, plain)


def _explain_texts(
    model: "Pipeline",
    texts: list[str],
    label: str | None,
    method: str | None,
    unit: Unit | None,
    against: str | None,
    view: View | None,
    out: Path | None,
    into_folder: bool,
    master: bool,
) -> None:
    from mpad.explain import DEFAULT, explain
    from mpad.explain.page import write_pages

    part = (unit or Unit.occurrence).value
    explanations = (explain(model, one, label, method or DEFAULT, unit=part, against=against) for one in texts)
    if into_folder and out is not None:
        write_pages(track(explanations, "explaining", len(texts)), out)
        typer.echo(f"{len(texts):,} documents explained: {out / 'index.html'}", err=True)
        return
    with Console(stderr=True).status("explaining …"):  # only on a terminal
        explanation = next(explanations)
    _write_explanation(explanation, view, out, master)


def _print_change(model: "Pipeline", text: str, plain: bool) -> None:
    """Print the smallest change of the label."""
    from mpad.explain import find_counterfactual

    found = find_counterfactual(model, text)
    if plain:
        print_json(
            None if found is None else {**asdict(found), "label": str(found.label), "new_label": str(found.new_label)}
        )
    else:
        typer.echo("no removal of up to 5 words changes the label" if found is None else printable(str(found)))


def _check_options(check: bool, corpus: bool, unit: Unit | None) -> None:
    """Raise InputError for options that exclude each other."""
    if check and corpus:
        raise InputError("--check and --corpus exclude each other: use one at a time")
    if corpus and unit is not None:
        raise InputError("--corpus adds up explanations of occurrences: --unit is for --check, or for one document")


def _check_model(model: Path, label: str | None, against: str | None, method: str | None, needs_graph: bool) -> None:
    """Raise InputError for what a model cannot explain, without importing torch."""
    from mpad.registry import METHODS, REGISTRY, find_kind
    from mpad.storage.model_folder import open_model, read_kind

    kind = read_kind(model)
    entry = find_kind(kind)
    if entry is None or not entry.is_network:
        supported = ", ".join(name for name, entry in REGISTRY.items() if entry.explained_by)
        raise InputError(f"{model}: a '{kind}' cannot be explained; these can: {supported}")
    if needs_graph and kind != "mpad":
        raise InputError(f"{model}: a '{kind}' has no graph of words: --check and --corpus need an mpad model")
    if method is not None and method not in METHODS:
        raise InputError(f"no method '{method}' (known: {', '.join(METHODS)})")
    classes = [str(name) for name in open_model(model, lambda files: files.labels()).classes.tolist()]
    for name in (label, against):
        if name is not None and name not in classes:
            raise InputError(f"no class '{name}' to explain (known: {', '.join(classes)})")


def _is_file(text: str) -> bool:
    return len(text) < 4096 and "\0" not in text and Path(text).is_file()


def _sample(texts: list[str], most: int) -> list[str]:
    import random

    return texts if len(texts) <= most else random.Random(0).sample(texts, most)


def _write_explanation(explanation: "Explanation", view: View | None, out: Path | None, master: bool) -> None:
    from mpad.explain.terminal import as_text

    suffix = out.suffix.lower() if out is not None else ""
    if out is not None and view is None and suffix in _PICTURES:
        _save_picture(explanation, out)
        typer.echo(f"written to {out}", err=True)
        return
    view = view or {".html": View.html, ".htm": View.html, ".json": View.json}.get(suffix, View.terminal)
    if view is View.terminal and out is None:
        explanation.show()
        return
    if view is View.html:
        content = explanation.to_html(master=master)
    elif view is View.json:
        content = as_json(explanation.to_dict(), escape=out is None and sys.stdout.isatty()) + "\n"
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


def _save_picture(explanation: "Explanation", out: Path) -> None:
    """Write a picture, with one warning for all letters missing from the font."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explanation.to_figure().savefig(out)
    others = [one for one in caught if not str(one.message).startswith("Glyph ")]
    for one in others:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if len(others) < len(caught):
        typer.echo("letters that the picture's font does not have are drawn as boxes; .html shows them all", err=True)


def _print_faithfulness(model: "Pipeline", texts: list[str], method: str | None, unit: str, plain: bool) -> None:
    """Print the faithfulness of explanations, by every method or by one."""
    from mpad.explain.faithfulness import RANDOM, best, measure
    from mpad.explain.pairs import pair_share
    from mpad.registry import GENERAL_METHODS

    with progress_bar("explaining", len(texts)) as done:
        scores = measure(model, texts, [method] if method else GENERAL_METHODS, [unit], done=done)
    first = best(scores)
    if plain:
        print_json([asdict(one) for one in scores])
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
    print_rows(["method", *areas, "CPU ms per document"], rows)
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
    from mpad.explain.corpus import class_features

    with progress_bar("explaining", len(texts)) as done:
        features = class_features(model, texts, method, done=done)
    if plain:
        print_json([{**asdict(one), "label": str(one.label)} for one in features])
        return
    for one in features:
        typer.echo(f"\n{printable(str(one.label))}: {one.documents:,} documents")
        rows = [[row.text, row.weight, row.documents, row.example] for row in (*one.words, *one.edges)]
        if rows:
            print_rows(["word or pair", "weight per document", "documents", "example"], rows)


def _print_drift(model: "Pipeline", before: list[str], now: list[str], plain: bool) -> None:
    """Print the differences between two sets of documents."""
    from mpad.explain.drift import drift

    result = drift(model, before, now)
    if plain:
        print_json([asdict(one) for one in result])
        return
    rows = [
        [one.what, one.first, one.second, f"{one.difference:+.4f} ± {one.error:.4f}", "*" if one.clear else ""]
        for one in result
    ]
    print_rows([f"mean of {len(before):,} and {len(now):,} documents", "before", "now", "difference", ""], rows)
    typer.echo("* the 95 % interval of the difference excludes zero")
