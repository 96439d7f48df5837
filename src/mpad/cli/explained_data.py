"""`mpad explain --check` and `--corpus`: tables over a dataset."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from mpad.cli.output import Format, as_json, print_rows
from mpad.text.printable import printable

if TYPE_CHECKING:
    from mpad.pipeline.document_model import DocumentModel


def check(model: "DocumentModel", texts: list[str], method: str | None, unit: str, json: bool) -> None:
    """Print how far explanations can be trusted, by every method or by one."""
    from mpad.cli.progress import document_bar
    from mpad.explain.faithfulness import RANDOM, best, measure
    from mpad.explain.methods import METHODS
    from mpad.explain.pairs import pair_share

    with document_bar(len(texts), "explaining") as done:
        result = measure(model, texts, [method] if method else METHODS, [unit], done=done)
    first = best(result)
    if json:
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
            "" if one.method in (RANDOM, first.method) else pm(*first.lead(one)),
            f"{1000 * one.seconds:.0f}" if one.seconds else "",
        ]
        for one in result
    ]
    areas = ["deletion (lower)", "insertion (higher)", "gain over random", "behind the best"]
    of = f"by {unit}, {result[0].documents:,} documents, ± 95 %"
    typer.echo(f"areas under the curve of the label's probability, {of}")
    print_rows(["method", *areas, "CPU ms a document"], rows, Format.table)
    typer.echo(f"most faithful here: {first.method}")
    if unit == "edge" and not model.labels.multilabel:
        share = pair_share(model, texts)
        linear = "" if share.linear is None else f" and are {share.linear:.0%} of its linear part"
        typer.echo(
            f"pairs of words carry {share.model:.0%} of the labels' lead over runners-up{linear}; "
            f"without them {share.changed:.0%} of the labels change"
        )


def corpus(model: "DocumentModel", texts: list[str], method: str, json: bool) -> None:
    """Print what speaks for each class."""
    from mpad.cli.progress import document_bar
    from mpad.explain.corpus import class_features

    with document_bar(len(texts), "explaining") as done:
        result = class_features(model, texts, method, done=done)
    if json:
        plain: list[dict[str, Any]] = [{**asdict(one), "label": str(one.label)} for one in result]
        typer.echo(as_json(plain))
        return
    for one in result:
        typer.echo(f"\n{printable(str(one.label))}: {one.documents:,} documents")
        rows = [[t.text, t.weight, t.documents, t.example] for t in (*one.words, *one.edges)]
        if rows:
            print_rows(["word or pair", "weight a document", "documents", "example"], rows, Format.table)


def drifted(model: "DocumentModel", before: list[str], now: list[str], json: bool) -> None:
    """Print in what two sets of documents differ."""
    from mpad.explain.drift import drift

    result = drift(model, before, now)
    if json:
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
