"""`mpad export`: convert a model to ONNX or int8."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from mpad.cli.inputs import Force, LabelColumns, ModelFolder, OwnTokenizer, Reader, Separator, TextColumn
from mpad.cli.output import Format, FormatOption, check_new, print_rows

if TYPE_CHECKING:
    from mpad.export.check import Checked


def run(
    model: ModelFolder,
    onnx: Annotated[Path | None, Option(help="Folder for ONNX Runtime: model.onnx and the text preprocessing.")] = None,
    int8: Annotated[Path | None, Option(help="Folder for the model with 8-bit word vectors.")] = None,
    check: Annotated[str | None, Option(help="Labeled DATA: print size, speed and accuracy before and after.")] = None,
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    form: FormatOption = Format.table,
    tokenizer: OwnTokenizer = None,
    force: Force = False,
) -> None:
    """Convert a model for ONNX Runtime, or to a smaller one.

    Example: `mpad export my-model --onnx my-model-onnx`

    Example: `mpad export my-model --int8 my-small-model --check test.csv`

    --int8 writes a regular model folder. The output of --onnx needs neither mpad nor torch: see docs/how-to/onnx.md.
    """
    if onnx is None and int8 is None:
        raise typer.BadParameter("name a folder to write: --onnx OUT or --int8 OUT", param_hint="--onnx, --int8")
    _validate(model, onnx, int8, check)
    for out in (onnx, int8):
        check_new(out, force)
    reader = Reader.of(text, label, separator, model)
    texts, labels = ([], []) if check is None else reader.labeled(check, "test")
    from mpad.export.check import check_model, check_onnx
    from mpad.export.int8_folder import export_int8
    from mpad.export.onnx_folder import export_onnx

    rows = [("before", check_model(model, texts, labels, tokenizer))] if texts else []
    if onnx is not None:
        export_onnx(model, onnx, tokenizer)
        typer.echo(f"wrote {onnx}", err=True)
        rows += [("onnx", check_onnx(model, onnx, texts, labels, tokenizer))] if texts else []
    if int8 is not None:
        tables = export_int8(model, int8)
        typer.echo(f"wrote {int8} (8 bits: {', '.join(tables) or 'none, all tables are narrow'})", err=True)
        rows += [("int8", check_model(int8, texts, labels, tokenizer))] if texts else []
    if rows:
        _print_comparison(rows, form)


def _validate(model: Path, onnx: Path | None, int8: Path | None, check: str | None) -> None:
    """Validate arguments and installed packages before reading anything."""
    from mpad.errors import InputError
    from mpad.extras import require

    for out in (onnx, int8):
        if out is not None and out.resolve() == model.resolve():
            raise InputError(f"{out}: is the model itself; name another folder")
    for module in [] if onnx is None else ["onnxscript"] if check is None else ["onnxscript", "onnxruntime"]:
        require(module, extra="onnx")


def _print_comparison(rows: "list[tuple[str, Checked]]", form: Format) -> None:
    before = rows[0][1]
    columns = ["form", "megabytes", "documents/s", before.measure, "largest difference", "answers changed"]
    cells: list[list[Any]] = [
        [name, one.megabytes, round(one.speed), one.quality, *one.differs_from(before)] for name, one in rows
    ]
    print_rows(columns, cells, form)
