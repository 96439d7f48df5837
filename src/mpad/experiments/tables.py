"""Records + what the paper printed → Markdown. No number in a table is typed by hand."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mpad.datasets.catalogue import CATALOGUE
from mpad.datasets.statistics import Statistics
from mpad.experiments import paper
from mpad.experiments.protocol import BASELINE, make_cell, words_of
from mpad.experiments.records import Record
from mpad.experiments.summary import Setting, Summary, summarise
from mpad.experiments.table1 import counted, vectors_counted

Cells = dict[Setting, Summary]
MAIN = "authors"  # the preset of the tables that have room for one
_VARIANTS = ("mpad", "mpad-sentence-att", "mpad-clique", "mpad-path")
_TITLES = {
    BASELINE: "TF-IDF + linear SVM",
    "mpad": "MPAD",
    **{name: f"MPAD-{name.removeprefix('mpad-')}" for name in _VARIANTS[1:]},
    **{f"mpad-{steps}mp": f"MPAD {steps}MP" for steps in (1, 3, 4)},
    "mpad-undirected": "MPAD 2MP undirected",
    "mpad-no-master": "MPAD 2MP no master node",
    "mpad-no-renormalisation": "MPAD 2MP no renormalisation",
    "mpad-neighbours-only": "MPAD 2MP neighbours only",
    "mpad-no-master-skip": "MPAD 2MP no master node skip connection",
}


def write(records: Iterable[Record], folder: Path) -> Path:
    """Write all tables anew to `<folder>/tables.md`."""
    cells = summarise(records)
    figures = sorted((folder / "figures").glob("*.png"))
    parts = [
        "# The paper's tables, again\n",
        "Written by `mpad reproduce` from the records beside this file; nothing here is typed by hand. "
        f"{_provenance(cells)}\n",
        "## Table 1: the datasets\n",
        table_1(folder),
        "## Table 2: accuracy\n",
        table_2(cells),
        "## Table 3: ablations\n",
        table_3(cells),
        "## Every cell\n",
        details(cells),
        *[f"![{file.stem.replace('-', ' ')}](figures/{file.name})\n" for file in figures],
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tables.md").write_text("\n".join(parts), encoding="utf-8")
    return folder / "tables.md"


def table_1(folder: Path) -> str:
    """Statistics beside the printed ones; case is kept where that brings the vocabulary nearer to the paper's."""
    header = ["dataset", "training", "test", "classes", "mean words", "most", "vocabulary", "with a vector"]
    rows = []
    result = counted(folder)
    for name, printed in paper.TABLE_1.items():
        if name not in result:
            ours = None
        else:
            kept = min(result[name], key=lambda tokenizer: abs(result[name][tokenizer].vocabulary - printed.vocabulary))
            ours = result[name][kept]
        cased = " (case kept)" if ours is not None and kept == "kim-cased" else ""
        rows.append([CATALOGUE[name].title + cased, *_beside(printed, ours)])
    header += ["duplicates", "two labels", "test in training", "empty"]
    named = "; ".join(sorted(vectors_counted(folder)))
    return (
        _table(header, rows)
        + "\nAs printed; ours in brackets where it differs. The last four columns are ours: documents whose words "
        "stand before them already, texts with more than one label, test documents that are training documents too, "
        f"documents without a word. Vectors: {named or 'none counted'}. By `mpad reproduce table1`.\n"
    )


def _beside(printed: Statistics, ours: Statistics | None) -> list[str]:
    def one(name: str, form: str = ",") -> str:
        theirs, own = getattr(printed, name), None if ours is None else getattr(ours, name)
        if name == "mean_words":  # the paper cuts, it does not round
            same = own is not None and int(10 * own) == round(10 * theirs)
        else:
            same = own == theirs
        shown = "CV" if name == "test" and not theirs else format(theirs, form)
        return shown if same or own is None else f"{shown} ({format(own, form)})"

    names = ("training", "test", "classes", "mean_words", "longest", "vocabulary", "pretrained")
    columns = [one(name, ".1f" if name == "mean_words" else ",") for name in names]
    own = ("", "", "", "") if ours is None else (ours.duplicates, ours.two_labels, ours.leaked, ours.empty)
    return [*columns, *[f"{number:,}" if number != "" else "not here" for number in own]]


def table_2(cells: Cells) -> str:
    """All rows of the paper's Table 2, and ours."""
    datasets = (*paper.TABLE_2_DATASETS, "snippets")
    rows: list[list[str]] = []
    for model in paper.TABLE_2:
        if model not in _VARIANTS:
            rows.append([f"{model}, printed", *[_printed(model, name) for name in datasets]])
            ours = [_ours(_find(cells, name, model, None)) for name in datasets]
            if any(ours):
                rows.append([model, *ours])
    for model in (BASELINE, "widemlp", "fasttext", "minilm-lr", "texting"):  # what a practitioner would pick today
        ours = [_ours(_find(cells, name, model, None)) for name in datasets]
        if any(ours) or model == BASELINE:
            rows.append([_TITLES.get(model, model), *ours])
    for model in _VARIANTS:
        rows.append([f"{_TITLES[model]}, printed", *[_printed(model, name) for name in datasets]])
    for preset in sorted({setting[2] for setting in cells if setting[2] is not None}):
        best = {name: _best(cells, name, preset) for name in datasets}
        for model in _VARIANTS:
            result = [_ours(_find(cells, name, model, preset), best[name] == model) for name in datasets]
            rows.append([f"{_TITLES[model]}, `{preset}`", *result])
    header = ["accuracy, %", *[CATALOGUE[name].title for name in datasets]]
    return (
        _table(header, rows)
        + "\n± is half of the 95 % interval: over folds, or over seeds and the sampling of the test part. \\* is the "
        "variant with the best validation accuracy. `authors` and `paper` are presets. MPQA's plain folds leak "
        "(equal texts on both sides); with folds grouped by text it stands below.\n"
    )


def overview(cells: Cells, preset: str = MAIN) -> str:
    """The short table of the README: the baseline, MPAD, and the variant that validation accuracy chooses."""
    rows = []
    for name in (*paper.TABLE_2_DATASETS, "snippets"):
        best = _best(cells, name, preset)
        if best is not None:
            own = (_ours(_find(cells, name, "mpad", preset)), _printed("mpad", name))
            chosen = (_TITLES[best], _ours(_find(cells, name, best, preset)), _printed(best, name))
            rows.append([CATALOGUE[name].title, _ours(_find(cells, name, BASELINE, None)), *own, *chosen])
    return _table(["accuracy, %", _TITLES[BASELINE], "MPAD", "printed", "best on validation", "ours", "printed"], rows)


def table_3(cells: Cells) -> str:
    """The ablations."""
    rows = []
    for model in paper.TABLE_3:
        title = "MPAD 2MP" if model == "mpad" else _TITLES[model]
        row = [title]
        for name in paper.TABLE_3_DATASETS:
            row += [_printed(model, name), _ours(_find(cells, name, model, MAIN))]
        rows.append(row)
    rows.append([_TITLES[BASELINE]])
    for name in paper.TABLE_3_DATASETS:
        rows[-1] += ["", _ours(_find(cells, name, BASELINE, None))]
    header = ["accuracy, %"]
    for name in paper.TABLE_3_DATASETS:
        header += [f"{CATALOGUE[name].title}, printed", f"{CATALOGUE[name].title}, `{MAIN}`"]
    return _table(header, rows)


def details(cells: Cells, only: Sequence[tuple[str, str]] | None = None) -> str:
    """Each cell in full: how many runs, how they scatter, and how far from the printed number they are."""
    order = {name: place for place, name in enumerate(CATALOGUE)}
    wanted = None if only is None else {*only, *[(name, BASELINE) for name, _ in only]}
    shown = {setting: result for setting, result in cells.items() if wanted is None or setting[:2] in wanted}
    result = sorted(shown.items(), key=lambda item: (order.get(item[0][0], len(order)), str(item[0])))
    return _table(_DETAILS, [_detail(*item) for item in result]) + f"\n{_provenance(shown)}\n"


_DETAILS = (
    *("dataset", "model", "setting", "runs", "validation"),
    *("test, 95 %", "s.d.", "printed", "difference", "in s.e."),
)


def _detail(setting: Setting, result: Summary) -> list[str]:
    dataset, model, preset, tokenizer, grouped = setting
    words = [preset, "case kept" if tokenizer == "kim-cased" else None, "folds grouped by text" if grouped else None]
    printed = None if grouped else paper.printed(model, dataset)
    apart = ["", ""]
    if isinstance(printed, float):
        apart = [f"{result.mean - printed:+.2f}", f"{result.differs(printed):+.1f}"]
    return [
        dataset,
        model,
        ", ".join(word for word in words if word),
        str(len(result.records)),
        "" if result.validation is None else f"{result.validation:.2f}",
        f"{result.mean:.2f} ± {result.margin:.2f}",
        f"{result.deviation:.2f}",
        _printed(model, dataset) if not grouped else "",
        *apart,
    ]


def _find(cells: Cells, dataset: str, model: str, preset: str | None) -> Summary | None:
    return cells.get((dataset, model, preset, words_of(model, "kim"), False))


def _best(cells: Cells, dataset: str, preset: str) -> str | None:
    """The variant with the best validation accuracy: nothing is chosen by test documents."""
    result = {model: _find(cells, dataset, model, preset) for model in _VARIANTS}
    whole = {model: cell for model, cell in result.items() if cell is not None and not _lacking(cell)}
    known = {model: cell.validation for model, cell in whole.items() if cell.validation is not None}
    return max(known, key=lambda model: known[model]) if known else None


def _ours(result: Summary | None, best: bool = False) -> str:
    if result is None:
        return ""
    partly = f" ({len(result.records)} runs)" if _lacking(result) else ""
    return f"{result.mean:.2f} ± {result.margin:.2f}{partly}{chr(92) + '*' if best else ''}"


def _lacking(result: Summary) -> int:
    """How many of a cell's folds and seeds have not been run."""
    one = result.records[0]
    done = {(record.fold, record.seed) for record in result.records}
    return len(set(make_cell(one.dataset, one.model).runs) - done) if one.dataset in CATALOGUE else 0


def _printed(model: str, dataset: str) -> str:
    value = paper.printed(model, dataset)
    return "" if value is None else str(value) if isinstance(value, str) else f"{value:.2f}"


def _provenance(cells: Cells) -> str:
    records = [record for result in cells.values() for record in result.records]
    if not records:
        return "There are no records yet."
    vectors = "; ".join(sorted({record.vectors for record in records if record.vectors}))
    commits = ", ".join(sorted({record.commit for record in records}))
    devices = "; ".join(sorted({record.device for record in records}))
    return f"{len(records):,} runs. Word vectors: {vectors or 'none'}. Devices: {devices}. Commits: {commits}."


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
