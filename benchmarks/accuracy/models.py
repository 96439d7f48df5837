"""`python -m benchmarks.accuracy.models [PART …]`: what the documentation says of single trained models.

pairs: minimal pairs of sentiment, by the default model and the linear stack, trained on Polarity's first fold
forms: a default model of the embedded corpus as a folder, as ONNX and with 8-bit tables

Writes models.json, each row with its commit; a part that is not named stays as it is there. Polarity comes from the
folder MPAD_DATA.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from mpad import MPADClassifier, load_dataset
from mpad.evaluate.behavior import check_behavior
from mpad.export.check import check_model, check_onnx
from mpad.export.int8_folder import export_int8
from mpad.export.onnx_folder import export_onnx
from mpad.paper import zoo
from mpad.paper.experiments.provenance import versions
from mpad.paper.experiments.splits import split

Rows = list[dict[str, Any]]


def pairs() -> Iterator[dict[str, Any]]:
    """The share of minimal pairs that are right, by category."""
    corpus = split(load_dataset("polarity"))
    first = corpus.splits[0]
    learnt = np.concatenate([first.training, *([] if first.validation is None else [first.validation])])
    texts, labels = [corpus.texts[k] for k in learnt], [corpus.labels[k] for k in learnt]
    for name in ("mpad", "linear-stack"):
        options = {"random_state": 0, "device": "cpu"} if name == "mpad" else {}
        model = zoo.make(name, **options).fit(texts, labels)
        for one in check_behavior(list(model.classes_), model.predict_proba):
            yield {"model": name, **asdict(one), "low": one.interval.low, "high": one.interval.high}


def forms() -> Iterator[dict[str, Any]]:
    """Size, accuracy and changed answers of a model's folder, its ONNX form and its 8-bit form."""
    dataset = load_dataset("docstrings")
    texts, labels = dataset.test.texts, dataset.test.labels or []
    with tempfile.TemporaryDirectory() as folder:
        before, onnx, int8 = (Path(folder) / name for name in ("before", "onnx", "int8"))
        MPADClassifier(random_state=0, device="cpu").fit(dataset.train.texts, dataset.train.labels).save(before)
        export_onnx(before, onnx)
        export_int8(before, int8)
        checked = {
            "before": check_model(before, texts, labels),
            "onnx": check_onnx(before, onnx, texts, labels),
            "int8": check_model(int8, texts, labels),
        }
    for name, one in checked.items():
        apart, changed = one.differs_from(checked["before"])
        about = {"form": name, "megabytes": one.megabytes, "documents_a_second": one.speed, "accuracy": one.quality}
        yield {**about, "largest_difference": apart, "answers_changed": changed}


PARTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {"pairs": pairs, "forms": forms}


def forms_table(rows: Rows) -> str:
    """The table of docs/how-to/int8.md; speeds are left out: they are those of a moment."""
    lines = ["| form | megabytes | accuracy | largest difference | answers changed |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        cells = row["form"], f"{row['megabytes']:.1f}", f"{row['accuracy']:.4f}", f"{row['largest_difference']:.4f}"
        lines.append(f"| {' | '.join(cells)} | {row['answers_changed']} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the parts named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.models")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    chosen = parser.parse_args(arguments)
    if unknown := sorted(set(chosen.parts) - set(PARTS)):
        parser.error(f"no part '{unknown[0]}' (known: {', '.join(PARTS)})")
    results.check_clean()
    file = results.HERE / "models.json"
    record = json.loads(file.read_text()) if file.is_file() else {}
    origin = {"commit": results.measured_commit(), "versions": versions()}
    for name in chosen.parts or PARTS:
        record[name] = [{**row, **origin} for row in PARTS[name]()]
        file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
