"""`mpad report`: a model on labelled documents, as one page to mail."""

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
    labelled_documents,
    remembered_columns,
    remembered_separator,
    unlabelled,
)
from mpad.cli.output import check_new


def run(
    model: ModelFolder,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write, an .html file.")] = Path("report.html"),
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    against: Annotated[
        str | None, typer.Option(help="Other DATA, such as what the model learnt from, to see what has drifted.")
    ] = None,
    mistakes: Annotated[int, typer.Option(min=0, help="Mistakes to explain, the surest first.")] = 8,
    force: Force = False,
    tokenizer: OwnTokenizer = None,
) -> None:
    """Write a report: scores with intervals, confusions, what speaks for each class, the surest mistakes explained.

    Example: `mpad report my-model test.csv --out report.html`

    Example: `mpad report my-model this-week.csv --against train.csv --out report.html`

    Example: `mpad report my-model tickets.csv --label tags --separator ';'`

    Of many labels a document: micro- and macro-F1, and each label right, missed and wrongly given.

    One file of HTML without a script: it can be mailed, and asks nobody for anything. It quotes the mistakes, and words
    of the other documents.
    """
    from mpad.errors import InputError

    check_new(out, force, (".html", ".htm"))
    remembered = remembered_columns(model)
    sign = separator or remembered_separator(model)
    documents = labelled_documents(data, text, label, "test", sign, remembered)
    texts, labels = documents.texts, documents.labels or []
    then = None if against is None else unlabelled(against, text, remembered)
    from mpad.cli.progress import document_bar
    from mpad.evaluate.report import make_report
    from mpad.files.atomic import write_file
    from mpad.paper import zoo
    from mpad.pipeline.document_model import DocumentModel

    classifier = zoo.load(model, "cpu", tokenizer)
    own = getattr(classifier, "model_", None)
    if not isinstance(own, DocumentModel):
        raise InputError(f"{model}: a report explains mistakes, which an mpad model can; mpad evaluate takes any")
    with document_bar(min(len(texts), 200), "explaining") as done:
        page = make_report(
            own, texts, labels, classifier.card_, model.resolve().name, then, mistakes, done, documents.ids
        )
    write_file(out, page.encode("utf-8", "replace"))
    typer.echo(f"wrote {out} ({len(texts):,} documents)", err=True)
