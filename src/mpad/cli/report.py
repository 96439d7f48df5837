"""`mpad report`: evaluation of a model as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from mpad.cli.inputs import (
    Data,
    Force,
    LabelColumns,
    ModelFolder,
    OwnTokenizer,
    Separator,
    TextColumn,
    read_labeled_documents,
    read_texts,
    remembered_columns,
    remembered_separator,
)
from mpad.cli.output import check_new


def run(
    model: ModelFolder,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")] = Path("report.html"),
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    against: Annotated[
        str | None, typer.Option(help="Other DATA, such as the training data, to measure drift against.")
    ] = None,
    mistakes: Annotated[int, typer.Option(min=0, help="Mistakes to explain, most confident first.")] = 8,
    force: Force = False,
    tokenizer: OwnTokenizer = None,
) -> None:
    """Write a report: scores with intervals, confusions, calibration, top features per class, explained mistakes.

    Example: `mpad report my-model test.csv --out report.html`

    Example: `mpad report my-model this-week.csv --against train.csv --out report.html`

    Example: `mpad report my-model tickets.csv --label tags --separator ';'`

    For multi-label data: micro-F1, macro-F1, and each label right, missed and wrongly given.

    The report is one self-contained HTML file without scripts. It quotes the mistakes, and words of other documents.
    """
    from mpad.errors import InputError

    check_new(out, force, (".html", ".htm"))
    remembered = remembered_columns(model)
    label_separator = separator or remembered_separator(model)
    documents = read_labeled_documents(data, text, label, "test", label_separator, remembered)
    texts, labels = documents.texts, documents.labels or []
    reference = None if against is None else read_texts(against, text, remembered)
    from mpad.cli.progress import document_bar
    from mpad.evaluate.report import make_report
    from mpad.files.atomic import write_file
    from mpad.paper import zoo

    classifier = zoo.load(model, "cpu", tokenizer)
    network_model = getattr(classifier, "model_", None)
    if network_model is None or network_model.kind != "mpad":
        raise InputError(f"{model}: a report explains mistakes, which an mpad model can; mpad evaluate takes any")
    with document_bar(min(len(texts), 200), "explaining") as done:
        page = make_report(classifier, texts, labels, model.resolve().name, reference, mistakes, done, documents.ids)
    write_file(out, page.encode("utf-8", "replace"))
    typer.echo(f"wrote {out} ({len(texts):,} documents)", err=True)
