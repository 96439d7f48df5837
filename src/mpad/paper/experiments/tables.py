"""Records + what the paper printed → Markdown. No number in a table is typed by hand."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mpad.errors import DataFileError
from mpad.files.atomic import write_file
from mpad.paper.datasets import load_dataset
from mpad.paper.datasets.catalogue import CATALOGUE
from mpad.paper.datasets.statistics import Statistics, describe
from mpad.paper.experiments import paper, provenance
from mpad.paper.experiments.engines import engine_of
from mpad.paper.experiments.protocol import BASELINE, RECIPES, make_cell
from mpad.paper.experiments.records import Record
from mpad.paper.experiments.summary import MAIN, VARIANTS, Cells, Setting, Summary, find_cell, summarise

TITLES = {
    BASELINE: "TF-IDF + linear SVM",
    "mpad": "MPAD",
    **{name: f"MPAD-{name.removeprefix('mpad-')}" for name in VARIANTS[1:]},
    **{f"mpad-{steps}mp": f"MPAD {steps}MP" for steps in (1, 3, 4)},
    "mpad-undirected": "MPAD 2MP undirected",
    "mpad-no-master": "MPAD 2MP no master node",
    "mpad-no-renormalisation": "MPAD 2MP no renormalisation",
    "mpad-neighbours-only": "MPAD 2MP neighbours only",
    "mpad-no-master-skip": "MPAD 2MP no master node skip connection",
    "linear-stack": "linear stack",
    "mpad-best-network": "MPAD, `best`, its network alone",
    "mpad-best": "MPAD, `best`",
    "mpad-best-5": "MPAD, `best`, 5 averaged",
}
_DATASETS = (*paper.TABLE_2_DATASETS, "snippets")
_TOKENIZERS = ("kim", "kim-cased")
_LARGEST = "largest printed number"
_BEST = ("mpad-best-5", "best")
_PAPER = ("mpad", MAIN)
# (row, its preset), and what it is compared with: a row of ours, or what the paper prints.
_PAIRS: tuple[tuple[tuple[str, str], tuple[str, str | None]], ...] = (
    (_BEST, ("tfidf-svm", None)),
    (_BEST, ("linear-stack", None)),
    (_BEST, ("minilm-lr", None)),
    (_BEST, (_LARGEST, None)),
    (("mpad-best", "best"), ("mpad-best-network", "best")),
    (_PAPER, ("mpad-1mp", MAIN)),
    (_PAPER, ("mpad-3mp", MAIN)),
    (_PAPER, ("mpad-4mp", MAIN)),
    (_PAPER, ("mpad-no-master", MAIN)),
)


def write(records: Iterable[Record], folder: Path) -> Path:
    """Write all tables to `<folder>/tables.md`."""
    cells = summarise(records)
    shown = {key: cell for key, cell in cells.items() if key[3] != "kim-cased" and not key[4]}  # others: every cell
    ablated = {key: cell for key, cell in shown.items() if key[0] in paper.TABLE_3_DATASETS and key[1] in paper.TABLE_3}
    figures = sorted((folder / "figures").glob("*.png"))
    parts = [
        "# The paper's tables, again\n",
        "Written by `mpad reproduce` from the records beside this file; nothing here is typed by hand. "
        f"{_provenance(cells)}\n",
        "## Table 1: the datasets\n",
        table_1(folder),
        "## Table 2: accuracy\n",
        table_2(cells),
        engine_note(shown),
        "## Table 3: ablations\n",
        table_3(cells),
        engine_note(ablated),
        "## In short\n",
        margins(cells),
        reproduced(cells),
        "## Every cell\n",
        details(cells),
        *[f"![{file.stem.replace('-', ' ')}](figures/{file.name})\n" for file in figures],
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tables.md").write_text("\n".join(parts), encoding="utf-8")
    return folder / "tables.md"


def count(dataset: str, vectors: str | None, folder: Path) -> None:
    """Count a dataset, lower-cased and with case kept, and write the counts to `<folder>/statistics.json`."""
    loaded = load_dataset(dataset)
    kept = _read(folder)
    kept[dataset] = {
        "commit": provenance.commit(),
        "vectors": None if vectors is None else provenance.describe_vectors(vectors),
        **{name: asdict(describe(loaded, name, vectors)) for name in _TOKENIZERS},
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "statistics.json", f"{json.dumps(dict(sorted(kept.items())), indent=1)}\n".encode())


def counted(folder: Path) -> dict[str, dict[str, Statistics]]:
    """Return the statistics of each dataset by tokenizer."""
    return {
        name: {tokenizer: Statistics(**result[tokenizer]) for tokenizer in _TOKENIZERS}
        for name, result in _read(folder).items()
    }


def vectors_counted(folder: Path) -> set[str]:
    """The vector files that words were looked up in."""
    return {result["vectors"] for result in _read(folder).values() if result["vectors"]}


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    file = folder / "statistics.json"
    try:
        result: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except ValueError as error:
        raise DataFileError(f"{file}: not the counts that mpad reproduce table1 writes: {error}") from None
    return result


def table_1(folder: Path) -> str:
    """Statistics beside the printed ones; case is kept where that brings the vocabulary nearer to the paper's."""
    header = ["dataset", "training", "test", "classes", "mean words", "most", "vocabulary", "with a vector"]
    rows = []
    result = counted(folder)
    for name, printed in paper.TABLE_1.items():
        ours = result.get(name, {})
        kept = min(ours, key=lambda tokenizer: abs(ours[tokenizer].vocabulary - printed.vocabulary), default="")
        cased = " (case kept)" if kept == "kim-cased" else ""
        rows.append([CATALOGUE[name].title + cased, *_beside(printed, ours.get(kept))])
    header += ["duplicates", "two labels", "test in training", "empty"]
    named = "; ".join(sorted(vectors_counted(folder)))
    return (
        _markdown(header, rows)
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
    rows: list[list[str]] = []
    for model in paper.TABLE_2:
        if model not in VARIANTS:
            rows.append([f"{model}, printed", *[_printed(model, name) for name in _DATASETS]])
            rows += _our_row(cells, model, model)
    for model in (BASELINE, "widemlp", "fasttext", "minilm-lr", "texting"):  # what a practitioner would pick today
        rows += _our_row(cells, model, TITLES.get(model, model), always=model == BASELINE)
    for model in VARIANTS:
        rows.append([f"{TITLES[model]}, printed", *[_printed(model, name) for name in _DATASETS]])
    for preset in sorted({setting[2] for setting in cells if setting[2] is not None and setting[1] in VARIANTS}):
        best = {name: _best(cells, name, preset) for name in _DATASETS}
        for model in VARIANTS:
            result = [_ours(find_cell(cells, name, model, preset), best[name] == model) for name in _DATASETS]
            rows.append([f"{TITLES[model]}, `{preset}`", *result])
    rows += _default_rows(cells)
    header = ["accuracy, %", *[CATALOGUE[name].title for name in _DATASETS]]
    return (
        _markdown(header, rows)
        + "\n± is half of the 95 % interval: over folds, or over seeds and the sampling of the test part. \\* is the "
        "variant with the best validation accuracy. `authors`, `paper` and `best` are presets. The last row says how "
        "many standard errors of ours the averaged `best` is above the largest number that the paper prints in the "
        "column, of any model; beyond ± 2 that is significant. MPQA's plain folds leak "
        "(equal texts on both sides); with folds grouped by text it stands below.\n"
    )


def _our_row(cells: Cells, model: str, title: str, preset: str | None = None, always: bool = False) -> list[list[str]]:
    """Return our row of a model; none if it was not run on any dataset."""
    ours = [_ours(find_cell(cells, name, model, preset)) for name in _DATASETS]
    return [[title, *ours]] if any(ours) or always else []


def _default_rows(cells: Cells) -> list[list[str]]:
    """The default and its baseline; the largest printed number of each dataset, and how far from it we are."""
    rows = _our_row(cells, "linear-stack", TITLES["linear-stack"])
    for model in RECIPES:
        rows += _our_row(cells, model, TITLES[model], "best")
    largest, apart = ["largest printed number"], ["`best`, 5 averaged, above it (standard errors)"]
    for name in _DATASETS:
        number, result = paper.largest_printed(name), find_cell(cells, name, "mpad-best-5", "best")
        largest.append(_shown(number))
        if number is None or result is None:
            apart.append("")
        else:
            errors = f"{result.differs(number):+.1f}" if result.error else "no spread"
            apart.append(f"{result.mean - number:+.2f} ({errors})")
    return [*rows, largest, apart] if any(apart[1:]) else rows


def overview(cells: Cells) -> str:
    """The short table of docs/results.md: linear models, today's default, the paper's network beside its print."""
    rows = []
    for name in _DATASETS:
        ours = [find_cell(cells, name, "mpad-best-5", "best"), find_cell(cells, name, "mpad")]
        if any(ours):
            linear = [_ours(find_cell(cells, name, model, None)) for model in (BASELINE, "linear-stack")]
            last = [_printed("mpad", name), _shown(paper.largest_printed(name))]
            rows.append([CATALOGUE[name].title, *linear, *map(_ours, ours), *last])
    titles = [TITLES[model] for model in (BASELINE, "linear-stack", "mpad-best-5")]
    return _markdown(["accuracy, %", *titles, f"MPAD, `{MAIN}`", "printed", "largest printed, any model"], rows)


def table_3(cells: Cells) -> str:
    """The ablations."""
    rows = []
    for model in paper.TABLE_3:
        title = "MPAD 2MP" if model == "mpad" else TITLES[model]
        row = [title]
        for name in paper.TABLE_3_DATASETS:
            row += [_printed(model, name), _ours(find_cell(cells, name, model))]
        rows.append(row)
    rows.append([TITLES[BASELINE]])
    for name in paper.TABLE_3_DATASETS:
        rows[-1] += ["", _ours(find_cell(cells, name, BASELINE, None))]
    header = ["accuracy, %"]
    for name in paper.TABLE_3_DATASETS:
        header += [f"{CATALOGUE[name].title}, printed", f"{CATALOGUE[name].title}, `{MAIN}`"]
    return _markdown(header, rows)


def details(cells: Cells, only: Sequence[tuple[str, str]] | None = None) -> str:
    """Each cell in full: how many runs, how they scatter, and how far from the printed number they are."""
    order = {name: place for place, name in enumerate(CATALOGUE)}
    wanted = None if only is None else {*only, *[(name, BASELINE) for name, _ in only]}
    shown = {setting: result for setting, result in cells.items() if wanted is None or setting[:2] in wanted}
    result = sorted(shown.items(), key=lambda item: (order.get(item[0][0], len(order)), str(item[0])))
    return _markdown(_DETAILS, [_detail(*item) for item in result]) + f"\n{_provenance(shown)}\n"


_DETAILS = (
    *("dataset", "model", "setting", "runs", "validation"),
    *("test, 95 %", "s.d.", "printed", "difference", "in s.e.", "engine"),
)


def _detail(setting: Setting, result: Summary) -> list[str]:
    dataset, model, preset, tokenizer, grouped = setting
    words = [preset, "case kept" if tokenizer == "kim-cased" else None, "folds grouped by text" if grouped else None]
    engines, now = ", ".join(map(str, result.engines)), engine_of(model)
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
        _shown(printed),
        *apart,
        engines if result.engines == (now,) else f"{engines} (now {now})",
    ]


def engine_note(cells: Cells) -> str:
    """Report the rows computed by an older engine, and where engines are mixed."""
    rows: dict[tuple[str, str | None], set[int]] = {}
    within = set()
    for (dataset, model, preset, *_), result in cells.items():
        rows.setdefault((model, preset), set()).update(result.engines)
        if len(result.engines) > 1:
            within.add(f"{_row(model, preset)} on {dataset}")
    older = {
        f"{_row(*row)} {', '.join(map(str, sorted(own)))} (now {engine_of(row[0])})"
        for row, own in rows.items()
        if min(own) < engine_of(row[0])
    }
    mixed = {_row(*row) for row, own in rows.items() if len(own) > 1}
    said = [", ".join(sorted(names)) or "none" for names in (older, mixed, within)]
    return (
        "An engine is a version of what a system computes; src/mpad/paper/experiments/engines.py says what changed. "
        f"Rows of an older one than today's: {said[0]}. Mixed within a row: {said[1]}. "
        f"Mixed within a cell: {said[2]}.\n"
    )


def _row(model: str, preset: str | None) -> str:
    return model if preset is None else f"{model} `{preset}`"


def _best(cells: Cells, dataset: str, preset: str) -> str | None:
    """The variant with the best validation accuracy: nothing is chosen by test documents."""
    result = {model: find_cell(cells, dataset, model, preset) for model in VARIANTS}
    whole = {model: cell for model, cell in result.items() if cell is not None and not _lacking(cell)}
    known = {model: cell.validation for model, cell in whole.items() if cell.validation is not None}
    return max(known, key=lambda model: known[model]) if known else None


def _ours(result: Summary | None, best: bool = False) -> str:
    if result is None:
        return ""
    partly = f" ({len(result.records)} runs)" if _lacking(result) else ""
    return f"{result.mean:.2f} ± {result.margin:.2f}{partly}{chr(92) + '*' if best else ''}"


def _lacking(result: Summary) -> int:
    """Return how many of a cell's folds and seeds have not been run."""
    one = result.records[0]
    done = {(record.fold, record.seed) for record in result.records}
    return len(set(make_cell(one.dataset, one.model).runs) - done) if one.dataset in CATALOGUE else 0


def _printed(model: str, dataset: str) -> str:
    return _shown(paper.printed(model, dataset))


def _shown(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.2f}"


def _provenance(cells: Cells) -> str:
    records = [record for result in cells.values() for record in result.records]
    if not records:
        return "There are no records yet."
    vectors = "; ".join(sorted({record.vectors for record in records if record.vectors}))
    commits = ", ".join(sorted({record.commit for record in records}))
    devices = "; ".join(sorted({record.device for record in records}))
    return f"{len(records):,} runs. Word vectors: {vectors or 'none'}. Devices: {devices}. Commits: {commits}."


def margins(cells: Cells) -> str:
    """Differences of mean test accuracies, in points, over the datasets that both rows have."""
    rows = []
    for (model, preset), (other, other_preset) in _PAIRS:
        apart = {}
        for name in _DATASETS:
            ours = find_cell(cells, name, model, preset)
            beside = find_cell(cells, name, other, other_preset)
            value = paper.largest_printed(name) if other == _LARGEST else None if beside is None else beside.mean
            if ours is not None and value is not None:
                apart[name] = round(ours.mean - value, 2) + 0.0  # not -0.0
        if apart:
            behind = ", ".join(f"{CATALOGUE[name].title} {value:+.2f}" for name, value in apart.items() if value <= 0)
            ahead = sum(value > 0 for value in apart.values())
            title = TITLES[model] if model != "mpad" else f"MPAD 2MP, `{preset}`"
            figures = [str(len(apart)), str(ahead), f"{min(apart.values()):+.2f}", f"{max(apart.values()):+.2f}"]
            rows.append([f"{title}, above {TITLES.get(other, other)}", *figures, behind])
    header = ["accuracy, points", "datasets", "ahead on", "least", "most", "not ahead on"]
    return _markdown(header, rows)


def reproduced(cells: Cells) -> str:
    """Of the numbers that Table 2 prints: how many were run, and how far ours are from them, in standard errors."""
    baselines = tuple(row for row in paper.TABLE_2 if row not in VARIANTS)
    groups = [(f"MPAD, `{preset}`", VARIANTS, preset) for preset in (MAIN, "paper")] + [("baselines", baselines, None)]
    rows = []
    for title, models, preset in groups:
        printed, apart = 0, []
        for model in models:
            for name in paper.TABLE_2_DATASETS:
                value, ours = paper.printed(model, name), find_cell(cells, name, model, preset)
                printed += isinstance(value, float)
                if isinstance(value, float) and ours is not None:
                    apart.append(ours.differs(value))
        counts = [len(apart), sum(abs(z) <= 1 for z in apart), sum(abs(z) <= 2 for z in apart)]
        beyond = [sum(z < -2 for z in apart), sum(z > 2 for z in apart)]
        rows.append([title, *[str(count) for count in (printed, *counts, *beyond)]])
    header = ["cells of Table 2", "printed", "run", "within 1", "within 2", "more than 2 below", "more than 2 above"]
    return _markdown(header, rows) + "\nIn standard errors of ours; Yelp2013's numbers are among the printed.\n"


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format rows of cells as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
