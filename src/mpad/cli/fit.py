"""`mpad fit`: train a classifier and save it."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from mpad.cli.inputs import (
    DataFiles,
    Device,
    Force,
    LabelColumns,
    Reader,
    Seed,
    Separator,
    TextColumn,
    Vectors,
    card_entries,
    drop_none,
    is_large,
    show_columns,
    vector_option,
)
from mpad.cli.options import Parameters, expand_parameters
from mpad.cli.output import check_new
from mpad.data.readers import Documents, Files, choose_columns
from mpad.errors import InputError
from mpad.text.contextual import WORDS

if TYPE_CHECKING:
    from mpad.estimator.classifier import MPADClassifier, TextClassifier
    from mpad.paper.baselines.base import PlainClassifier

_NETWORK = "variant preset encoder features steps hidden window directed members"
_TRAINING = "tokenizer max_epochs patience batch_size learning_rate dropout"  # of baselines, too


@expand_parameters
def run(
    files: DataFiles,
    out: Annotated[Path, Option("--out", "-o", help="Folder to write the model to.")],
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    model: Annotated[str, Option(help="mpad, or a baseline: cnn, dan, hn-att, tfidf-svm …")] = "mpad",
    *,
    network: Annotated[dict[str, Any], Parameters("MPADClassifier", _NETWORK)],
    vectors: Vectors = None,
    training: Annotated[dict[str, Any], Parameters("MPADClassifier", _TRAINING)],
    balanced: Annotated[bool, Option("--balanced", help="Weight classes equally, however rare.")] = False,
    device: Device = "auto",
    seed: Seed = 0,
    validation: Annotated[
        str | None, Option(help="Validation documents, instead of a tenth of DATA. They are never trained on.")
    ] = None,
    refit: Annotated[
        bool, Option("--refit", help="With --validation: after scoring, retrain on DATA and these documents.")
    ] = False,
    unlabeled: Annotated[
        str | None,
        Option(
            help="Texts without labels, which help with fewer than 300 labeled documents. Installed sentence encoders "
            "label them, or columns named as the classes hold probabilities. Used if cross-validation shows a gain."
        ),
    ] = None,
    class_name: Annotated[
        list[str] | None,
        Option(
            help="What a class is, as LABEL=TEXT, such as 3='refund request'. It helps with few labels. Repeatable.",
        ),
    ] = None,
    test: Annotated[str | None, Option(help="Test documents, scored with the model and a linear SVM.")] = None,
    add: Annotated[
        list[str] | None,
        Option(
            help="More labeled documents, such as corrections from the web app; they override DATA, and training "
            "continues from the model in OUT, if there is one. Repeatable."
        ),
    ] = None,
    anew: Annotated[bool, Option("--anew", help="With --add: train from scratch.")] = False,
    new_classes: Annotated[bool, Option("--new-classes", help="With --add: allow labels not in DATA.")] = False,
    keep_examples: Annotated[
        bool, Option("--keep-examples", help="Store three short documents per class, as examples in the web app.")
    ] = False,
    stream: Annotated[
        bool | None, Option(help="Read DATA from disk during training; by default above 1 GB and under torchrun.")
    ] = None,
    reading: Annotated[dict[str, Any], Parameters("StreamOptions", "cache workers epoch_documents", "With --stream:")],
    resume: Annotated[bool, Option("--resume", help="Resume interrupted training from its checkpoint.")] = False,
    force: Force = False,
) -> None:
    """Train a classifier on labeled documents and save it.

    Example: `mpad fit reviews.csv --text review --label sentiment --out my-model`

    Example: `mpad fit docstrings --preset paper --out my-model --max-epochs 30`

    Example: `mpad fit reviews.csv --model tfidf-svm --out baseline`

    Example: `mpad fit tickets.csv --label tags --separator ';' --out my-model`

    Example: `mpad fit reviews.csv --features minilm --out my-model`

    Example: `mpad fit reviews.csv --members 5 --out my-model`

    Example: `mpad fit reviews.csv --add corrections.csv --out my-model`

    Example: `mpad fit labeled.csv --unlabeled all-tickets.csv --out my-model`

    Example: `mpad fit labeled.csv --class-name 1='refund request' --class-name 2='bug report' --out my-model`

    Example: `mpad fit 'corpus/*.parquet' --stream --out my-model`

    Example: `torchrun --nproc-per-node 2 -m mpad fit 'corpus/*.parquet' --resume --out my-model`

    A tenth of the documents is held out, to compare the model with TF-IDF + linear SVM; with fewer than 300 documents,
    five-fold cross-validation does that. The default preset also
    fits the weights of its parts on them, and the other presets choose their epoch. Equal texts are never split.

    Ctrl-C stops training and keeps the model so far. After every epoch a checkpoint is written to OUT.checkpoint: after
    a crash, the same command with --resume continues and produces the same model.
    """
    from mpad.registry import find
    from mpad.storage.model_folder import check_destination

    find(model)
    check_destination(out)
    checkpoint = out.resolve().with_name(f"{out.resolve().name}.checkpoint")
    check_new(out, force or bool(add) or (resume and checkpoint.exists()))
    data: Files = files[0] if len(files) == 1 else files
    reader = Reader.of(text, label, separator)
    documents = None if _should_stream(data, stream, reading) else reader.documents(data, "train")
    from mpad.estimator.classifier import MPADClassifier, TextClassifier
    from mpad.estimator.training_card import closing_lines
    from mpad.paper import zoo
    from mpad.text.distilled import missing_hint

    if network.get("encoder") == "none":
        network["encoder"] = None
    weights = {"class_weight": "balanced" if balanced else None}
    shared = {**training, **weights, **vector_option(vectors), "device": device, "random_state": seed}
    classifier = MPADClassifier(**network, **shared) if model == "mpad" else zoo.make_with(model, shared)
    classifier.check_extras()
    tested = None
    if documents is None:
        named, examples = None if model == "mpad" else model, keep_examples or None
        refused = drop_none(
            model=named,
            validation=validation,
            unlabeled=unlabeled,
            class_name=class_name or None,
            test=test,
            add=add,
            keep_examples=examples,
        )
        if refused:
            option = next(iter(refused)).replace("_", "-")
            raise InputError(f"--{option} is for documents in memory; leave it out, or --no-stream")
        columns = choose_columns(data, reader.text, label)
        show_columns(data, columns)
        _train_on_stream(classifier, data, reader, reading, checkpoint, resume)
        if int(os.environ.get("RANK", "0")) > 0:
            return  # of several processes, the first writes the model
    else:
        columns = documents.columns
        documents = _apply_corrections(documents, add or [], separator, new_classes)
        texts, labels = documents.texts, documents.labels or []
        if add and not anew and model == "mpad":
            classifier = _load_for_warm_start(classifier, out)
        reader = replace(reader, remembered=columns)
        held = None if validation is None else reader.labeled(validation, "test")
        tested = None if test is None else reader.labeled(test, "test")
        more_texts = None if unlabeled is None else reader.unlabeled(unlabeled, set(map(str, labels)))
        further = drop_none(unlabeled=more_texts, class_names=_parse_class_names(class_name))
        _train(classifier, texts, labels, held, further, refit, checkpoint, resume)
        if keep_examples:
            classifier.card_["examples"] = documents.examples()
    classifier.card_ |= card_entries(data, columns, separator)
    _save(classifier, out)
    if isinstance(classifier, TextClassifier):  # only networks write checkpoints
        checkpoint.unlink(missing_ok=True)
        from_words = model == "mpad" and classifier.encoder_ is None and network["features"] == WORDS and not vectors
        hint = missing_hint() if from_words else None
        hints = [] if hint is None else [hint]
        lines = [*_epoch_lines(classifier, training.get("max_epochs")), *hints, *closing_lines(classifier)]
    else:
        lines = [f"{len(texts):,} documents, {len(classifier.classes_)} classes"]
    if tested is not None:
        lines.append(_test_line(classifier, (texts, labels), tested))
    more = f', mpad explain {out} "some text"' if model == "mpad" else ""
    for line in [*lines, f"saved to {out}; next: mpad predict {out} DATA{more}"]:
        typer.echo(line, err=True)


def _should_stream(data: Files, requested: bool | None, options: dict[str, Any]) -> bool:
    """Return whether to read DATA from disk during training: on request, above 1 GB, and under torchrun.

    Raise InputError if `options` of streaming were given without it.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        if requested is False:
            raise InputError("several processes read DATA from disk during training: leave --no-stream out")
        return True
    streamed = is_large(data) if requested is None else requested
    if options and not streamed:
        option = next(iter(options)).replace("_", "-")
        raise InputError(f"--{option} goes with --stream; these documents are read into memory")
    return streamed


def _apply_corrections(documents: Documents, files: list[str], separator: str | None, new_classes: bool) -> Documents:
    """Add the documents of further files; for a known text, the label of the last file replaces its label."""
    if not files:
        return documents
    latest: dict[str, Any] = {}
    for file in files:
        latest |= dict(zip(*Reader(separator=separator).labeled(file, "train"), strict=True))
    corrected = documents.corrected(Documents(list(latest), list(latest.values())), new_classes)
    pairs = zip(documents.labels or [], corrected.labels or [], strict=False)
    changed, added = sum(str(before) != str(after) for before, after in pairs), len(corrected) - len(documents)
    typer.echo(f"{changed:,} labels corrected, {added:,} documents added", err=True)
    return corrected


def _load_for_warm_start(classifier: "TextClassifier", out: Path) -> "TextClassifier":
    """Return the model in OUT with these settings, to continue its training; the new model if there is none."""
    if not (out / "config.json").exists():
        return classifier
    earlier = type(classifier).load(out, classifier.device)
    typer.echo(f"training continues from the model in {out} (--anew trains from scratch)", err=True)
    earlier.set_params(**{**classifier.get_params(deep=False), "warm_start": True})
    return earlier


def _parse_class_names(pairs: list[str] | None) -> dict[str, str] | None:
    """Return descriptions by label, from LABEL=TEXT."""
    if not pairs:
        return None
    wrong = [pair for pair in pairs if not all(part.strip() for part in pair.partition("="))]
    if wrong:
        raise InputError(f"--class-name expects LABEL=TEXT, found '{wrong[0]}'")
    parts = [(label.strip(), text.strip()) for label, _, text in (pair.partition("=") for pair in pairs)]
    names = [label for label, _ in parts]
    if len(set(names)) < len(names):
        raise InputError(f"--class-name names '{next(one for one in names if names.count(one) > 1)}' twice")
    return dict(parts)


def _train(
    classifier: "TextClassifier | PlainClassifier",
    texts: list[str],
    labels: list[Any],
    held: tuple[list[str], list[Any]] | None,
    further: dict[str, Any],
    refit: bool,
    checkpoint: Path,
    resume: bool,
) -> None:
    """Fit, a network with a progress bar and a checkpoint per epoch."""
    from mpad.estimator.classifier import TextClassifier

    if not isinstance(classifier, TextClassifier):
        if resume or held or further:
            refused = "--resume, --validation, --unlabeled and --class-name"
            raise InputError(f"{refused} are for networks; '{classifier.kind}' has no epochs")
        classifier.fit(texts, labels)
        return
    networks = getattr(classifier, "members", 1)
    if resume and networks > 1:
        raise InputError("--resume is for one network, not for several members")
    if resume and not checkpoint.exists():
        typer.echo(f"{checkpoint}: no checkpoint; starting with the first epoch", err=True)
    kept_at = checkpoint if networks == 1 else None
    options: dict[str, Any] = {"checkpoint": kept_at, "resume": resume, "keep_interrupted": True}
    with classifier.progress_bar() as sink:
        classifier.fit(texts, labels, validation=held, refit=refit, sink=sink, **further, **options)


def _train_on_stream(
    classifier: "MPADClassifier", data: Files, reader: Reader, reading: dict[str, Any], checkpoint: Path, resume: bool
) -> None:
    """Fit on files larger than memory, with one process or several."""
    from mpad.training.stream import StreamOptions

    label = reader.label[0] if reader.label and len(reader.label) == 1 else reader.label
    classifier.set_params(verbose=True).fit_stream(  # a bar on a terminal, otherwise lines
        data,
        text=reader.text,
        label=label,
        separator=reader.separator,
        options=StreamOptions(**reading),
        checkpoint=checkpoint,
        resume=resume,
        keep_interrupted=True,
    )
    classifier.set_params(verbose="auto")


def _epoch_lines(classifier: "TextClassifier", max_epochs: int | None) -> list[str]:
    """Describe the epochs, unless the last one was selected, as planned."""
    lines = []
    if max_epochs is not None and classifier.n_iter_ > max_epochs:
        lines.append(f"{classifier.n_iter_} epochs were done already, more than --max-epochs {max_epochs}")
    if classifier.interrupted_:
        lines.append(f"interrupted; kept epoch {classifier.best_epoch_}")
    elif classifier.best_epoch_ != classifier.n_iter_:
        lines.append(f"kept epoch {classifier.best_epoch_}")
    return lines


def _test_line(classifier: Any, training: tuple[list[str], list[Any]], test: tuple[list[str], list[Any]]) -> str:
    """Return the scores of the model and a linear SVM on test documents; unknown labels count as mistakes."""
    from mpad.evaluate.class_scores import ClassScores, evaluate
    from mpad.paper import zoo

    def score(model: Any) -> tuple[float, str, str]:
        scores = evaluate(model, *test)
        if not isinstance(scores, ClassScores):
            return scores.micro_f1.value, "micro-F1", ""
        value, low, high = scores.accuracy
        return value, "accuracy", f"95 % interval {100 * low:.1f} to {100 * high:.1f}; "

    value, measure, interval = score(classifier)
    baseline, *_ = score(zoo.make("tfidf-svm").fit(*training))
    result = f"test {measure} {100 * value:.1f} % ({interval}{len(test[0]):,} documents)"
    return f"{result}; on the same documents: TF-IDF + linear SVM {100 * baseline:.1f} %"


def _save(classifier: "TextClassifier | PlainClassifier", out: Path) -> None:
    """Save the model; if that fails, save it elsewhere rather than lose it."""
    import tempfile
    from secrets import token_hex

    from mpad.errors import StoreError

    try:
        classifier.save(out)
        return
    except StoreError as error:
        first = error
    for place in (out.resolve().parent, Path.cwd(), Path(tempfile.gettempdir())):
        instead = place / f"{out.resolve().name}-{token_hex(3)}"
        try:
            classifier.save(instead)
        except StoreError:
            continue
        raise StoreError(f"{first}; the model was saved to {instead} instead")
    raise first
