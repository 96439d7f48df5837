"""A model folder → a folder from which ONNX Runtime predicts, and the rules for reading text.

model.onnx           the network and the linear part: graphs of words → logits and probabilities
preprocessing.json   how text becomes graphs: tokenizer, unknown words, edges; the inputs; the classes
vocabulary.json      the words, in the order of their ids

A batch of documents is one graph with many components, as `graph.batch` makes it, so that any number of documents of
any length fits. Predictions are those of `inference.load`.
"""

from collections.abc import Callable, Iterable, Set
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpad import inference
from mpad._version import __version__
from mpad.errors import InputError
from mpad.files import atomic
from mpad.files.safe_json import read_json
from mpad.graph.packed import PackedGraphs
from mpad.storage.model_folder import VOCABULARY, write_json
from mpad.text.tokenizer import (
    KIM_KEPT,
    KIM_SET_APART,
    ONE_FORM,
    SENTENCE_BOUNDARY,
    KimTokenizer,
    Tokenizer,
    UnicodeTokenizer,
)
from mpad.text.vocabulary import CONTINUED, LONGEST_PIECED, SPARE_ROWS

MODEL, RULES = "model.onnx", "preprocessing.json"
NUMBERS = "model.onnx.data"  # the weights, where they are too large for model.onnx
_FORMAT = 1
INPUTS = {  # type, axis and meaning
    "words": ("int64", "nodes", "word id of each node, distinct in its graph; a graph's nodes stand together"),
    "owner": ("int64", "nodes", "graph of each node"),
    "source": ("int64", "edges", "node where the edge starts"),
    "target": ("int64", "edges", "node where it ends"),
    "weight": ("float32", "edges", "co-occurrences that the edge stands for"),
    "graph_owner": ("int64", "graphs", "document of each graph, rising from 0; a document has at least one"),
    "piece": ("int64", "pieces", "word id of each piece of a new word"),
    "piece_owner": ("int64", "pieces", "which new word the piece is of; that word's id is it plus the number of words"),
    "count": ("float32", "nodes", "how often the word stands in its graph"),
}


def export_onnx(
    folder: str | Path,
    out: str | Path,
    tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
) -> inference.Pipeline:
    """Write a model as ONNX, with all that is needed to turn text into its inputs.

    Parameters
    ----------
    folder : str or Path
        Folder of a fitted model.
    out : str or Path
        Folder to write.
    tokenizer : str, Tokenizer or callable, optional
        The tokenizer of a model that was trained with one of its own.

    Returns
    -------
    Pipeline
        The model.

    """
    pipeline = inference.load(folder, tokenizer)
    if pipeline.transformer is not None:
        raise InputError(
            f"{folder}: its features come from a transformer, which ONNX cannot have: fit with features='words'"
        )
    from mpad.export.onnx_model import write_onnx  # needs torch

    with atomic.write_folder(Path(out), _our_files) as fresh:
        inputs = write_onnx(pipeline, fresh / MODEL)
        write_json(fresh / VOCABULARY, list(pipeline.vocabulary.words))
        write_json(fresh / RULES, _rules(pipeline, inputs), indent=2)
    return pipeline


def onnx_inputs(graphs: PackedGraphs) -> dict[str, NDArray[Any]]:
    """Return packed graphs as arrays by the names of all inputs; models take those that they need."""
    shift = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
    sizes = [len(word) for word in graphs.new_words]
    arrays: dict[str, Any] = {
        "words": graphs.words,
        "owner": np.repeat(np.arange(graphs.n_graphs), np.diff(graphs.node_start)),
        "source": graphs.source + shift,
        "target": graphs.target + shift,
        "weight": graphs.weight,
        "graph_owner": np.repeat(np.arange(len(graphs)), np.diff(graphs.document_start)),
        "piece": [piece for word in graphs.new_words for piece in word],
        "piece_owner": np.repeat(np.arange(len(sizes)), sizes),
        "count": np.ones(len(graphs.words)) if graphs.count is None else graphs.count,
    }
    return {name: np.asarray(array, INPUTS[name][0]) for name, array in arrays.items()}


def _rules(pipeline: inference.Pipeline, inputs: list[str]) -> dict[str, Any]:
    """Return everything that is needed to make the inputs from text, and to read the outputs."""
    return {
        "format": _FORMAT,
        "mpad": __version__,
        "tokenizer": _tokenizer_rules(pipeline.tokenizer),
        "sentence_boundary": SENTENCE_BOUNDARY.pattern if pipeline.network.config.hierarchical else None,
        "unknown_words": {
            "first": len(pipeline.vocabulary),
            "rows": SPARE_ROWS,
            "checksum": "crc32 of UTF-8",
            "pieces": {"continued": CONTINUED, "longest": LONGEST_PIECED} if pipeline.vocabulary.has_pieces else None,
        },
        "graph": asdict(pipeline.graph_config),
        "labels": pipeline.labels.to_json(),
        "inputs": {name: f"{kind} ({axis},): {what}" for name, (kind, axis, what) in INPUTS.items() if name in inputs},
        "outputs": ["logits", "probabilities"],
    }


def _tokenizer_rules(tokenizer: Tokenizer) -> dict[str, Any]:
    if isinstance(tokenizer, KimTokenizer):
        kept = "".join(sorted(chr(byte) for byte in KIM_KEPT if byte > 1))
        apart = [[old.decode(), new.decode()] for old, new in KIM_SET_APART if old[0] > 1]
        return {"name": tokenizer.name, "kept": kept, "replaced": apart, "lower": tokenizer.lower}
    if isinstance(tokenizer, UnicodeTokenizer):
        letters = {chr(old): "" if new is None else new for old, new in ONE_FORM.items()}
        pattern = tokenizer.pattern.pattern
        return {"name": tokenizer.name, "pattern": pattern, "replaced": letters, "form": "NFC", "lower": True}
    return {"name": tokenizer.name, "own": True}  # the function that the model was trained with: yours to bring


def _our_files(folder: Path) -> Set[str] | None:
    """Return the names that an exported folder may hold; None if the folder is not one."""
    try:
        rules = read_json((folder / RULES).read_bytes(), InputError)
    except (OSError, InputError):
        return None
    own = isinstance(rules, dict) and "unknown_words" in rules
    return {MODEL, NUMBERS, RULES, VOCABULARY} if own else None
