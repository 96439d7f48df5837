"""`mpad thresholds`: choose when a model decides for a class, for a stated goal."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from mpad.cli.inputs import Force, LabelColumn, ModelFolder, OwnTokenizer, Reader, TextColumn, one_column
from mpad.cli.output import Format, FormatOption, check_new, print_rows
from mpad.errors import InputError


def run(
    model: ModelFolder,
    data: Annotated[str, Argument(help="Labeled documents that the model was not trained on.", show_default=False)],
    precision: Annotated[
        float | None, Option(help="Least share of correct decisions for each class, such as 0.95.")
    ] = None,
    recall: Annotated[
        float | None, Option(help="Least share of the documents of each class to find, such as 0.9.")
    ] = None,
    costs: Annotated[
        Path | None,
        Option(help="CSV file of costs: a row per true class, a column per decided class, perhaps one 'undecided'."),
    ] = None,
    only: Annotated[
        list[str] | None, Option("--class", help="Class that the goal is for; by default all. Repeatable.")
    ] = None,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder to write the model to; by default MODEL is updated.")
    ] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    form: FormatOption = Format.table,
    tokenizer: OwnTokenizer = None,
    force: Force = False,
) -> None:
    """Choose when a model decides for a class, and store that in the model.

    Example: `mpad thresholds my-model held-out.csv --precision 0.95`

    Example: `mpad thresholds my-model held-out.csv --recall 0.9 --class fraud`

    Example: `mpad thresholds my-model held-out.csv --costs costs.csv --out careful-model`

    With --precision, a document whose most probable class is not certain enough is undecided: `mpad predict` leaves its
    label empty, `predict` in Python returns None. With --recall, classes that are missed too often are preferred. With
    --costs, the class with the least expected cost is chosen.

    Precision and recall are printed as measured on DATA. On new documents they are a little lower; measure them with
    `mpad evaluate` on documents that were used for nothing else.
    """
    if out is not None:
        check_new(out, force)
    reader = Reader.of(text, one_column(label, "--label"), None, model)
    texts, labels = reader.labeled(data, "test")
    from mpad.estimator.classifier import TextClassifier
    from mpad.estimator.decisions import read_costs
    from mpad.files.encoding import decode
    from mpad.paper import zoo

    classifier = zoo.load(model, "cpu", tokenizer)
    if not isinstance(classifier, TextClassifier):
        raise InputError(f"{model}: thresholds are stored in networks, not in a '{classifier.kind}'")
    matrix = None
    if costs is not None:
        matrix = read_costs(decode(str(costs), costs.read_bytes()), classifier.classes_.tolist())
    known = {str(name): name for name in classifier.classes_.tolist()}
    unknown = [str(one) for one in labels if str(one) not in known]
    if unknown:
        raise InputError(f"{data}: the model does not know the label '{unknown[0]}' (it has: {', '.join(known)})")
    truth = [known[str(one)] for one in labels]
    chosen = classifier.choose_thresholds(texts, truth, precision=precision, recall=recall, costs=matrix, only=only)
    names, rows = chosen.table()
    print_rows(names, rows, form)
    typer.echo(f"decided: {chosen.coverage}", err=True)
    typer.echo(f"correct among the decided: {chosen.accuracy}", err=True)
    classifier.save(out or model)
    typer.echo(f"saved to {out or model}; next: mpad predict {out or model} DATA", err=True)
