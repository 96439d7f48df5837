"""`mpad report`: evaluation of a model as one HTML page."""

from pathlib import Path
from typing import Annotated

from typer import Option

from mpad.cli.inputs import Data, Force, LabelColumns, ModelFolder, OwnTokenizer, Reader, Separator, TextColumn
from mpad.cli.output import check_new, write_output
from mpad.cli.progress import progress_bar
from mpad.errors import InputError


def run(
    model: ModelFolder,
    data: Data,
    out: Annotated[Path, Option("--out", "-o", help="HTML file to write.")] = Path("report.html"),
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    against: Annotated[str | None, Option(help="Other DATA, such as the training data, to measure drift.")] = None,
    mistakes: Annotated[int, Option(min=0, help="Mistakes to explain, most confident first.")] = 8,
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
    check_new(out, force, (".html", ".htm"))
    reader = Reader.of(text, label, separator, model)
    documents = reader.documents(data, "test")
    texts, labels = documents.texts, documents.labels or []
    reference = None if against is None else reader.texts(against)
    from mpad.evaluate.report import make_report
    from mpad.paper import zoo

    classifier = zoo.load(model, "cpu", tokenizer)
    network_model = getattr(classifier, "model_", None)
    if network_model is None or network_model.kind != "mpad":
        raise InputError(f"{model}: a report explains mistakes, which an mpad model can; mpad evaluate takes any")
    name = model.resolve().name
    with progress_bar("explaining", min(len(texts), 200)) as done:
        page = make_report(classifier, texts, labels, name, reference, mistakes, done, documents.ids)
    write_output(out, page.encode("utf-8", "replace"), f"{len(texts):,} documents")
