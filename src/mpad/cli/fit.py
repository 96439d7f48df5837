"""`mpad fit`: train a classifier and save it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpad.cli.inputs import (
    DataFiles,
    Force,
    LabelColumns,
    Separator,
    TextColumn,
    column_entries,
    describe_source,
    drop_none,
    one_column,
    pick_examples,
    read_labeled,
    read_labeled_documents,
    vector_option,
)
from mpad.cli.output import check_new
from mpad.cli.streamed import epoch_lines, run_stream, should_stream
from mpad.config import DEFAULT_PRESET, MPADConfig
from mpad.data.labels import as_lists
from mpad.data.readers import Files
from mpad.errors import InputError
from mpad.graph.build import GraphConfig
from mpad.text.contextual import WORDS

if TYPE_CHECKING:
    from mpad.estimator.classifier import TextClassifier
    from mpad.paper.baselines.base import PlainClassifier


def run(
    files: DataFiles,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the model to.")],
    text: TextColumn = None,
    label: LabelColumns = None,
    separator: Separator = None,
    model: Annotated[str, typer.Option(help="mpad, or a baseline: cnn, dan, hn-att, tfidf-svm …")] = "mpad",
    variant: Annotated[str, typer.Option(help="Variant of mpad: mpad, sentence-att, clique or path.")] = "mpad",
    preset: Annotated[str, typer.Option(help="Preset of mpad: best, paper or authors.")] = DEFAULT_PRESET,
    vectors: Annotated[
        list[str] | None,
        typer.Option(
            help="Word vectors: auto (default), a file, the name or folder of a Model2Vec or sentence-transformers "
            "model, corpus, or none. Repeat it to concatenate several."
        ),
    ] = None,
    features: Annotated[
        str,
        typer.Option(help="Node features of mpad: words, minilm or the folder of a sentence transformer."),
    ] = WORDS,
    tokenizer: Annotated[
        str, typer.Option(help="Tokenizer: auto, kim, kim-cased, unicode, unicode-punctuation or module:function.")
    ] = "auto",
    steps: Annotated[int, typer.Option(help="Message passing steps.")] = MPADConfig.steps,
    hidden: Annotated[int, typer.Option(help="Hidden size of the network.")] = MPADConfig.hidden,
    window: Annotated[int, typer.Option(help="Size of the co-occurrence window.")] = GraphConfig.window,
    directed: Annotated[bool, typer.Option(help="Direct edges from a word to the next one.")] = True,
    members: Annotated[int, typer.Option(help="Networks in the ensemble.")] = 1,
    max_epochs: Annotated[
        int | None, typer.Option(help="Maximal number of epochs; by default that of the preset.")
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Epochs without improvement before stopping; by default that of the preset.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Documents per training step; by default that of the preset.")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Learning rate of Adam; by default that of the preset.")
    ] = None,
    dropout: Annotated[float, typer.Option(help="Dropout rate.")] = MPADConfig.dropout,
    balanced: Annotated[bool, typer.Option("--balanced", help="Weight classes equally, however rare.")] = False,
    device: Annotated[str, typer.Option(help="Device: auto, cpu, cuda or cuda:N.")] = "auto",
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    validation: Annotated[
        str | None,
        typer.Option(help="Validation documents, instead of a tenth of DATA. They are never trained on."),
    ] = None,
    refit: Annotated[
        bool,
        typer.Option("--refit", help="With --validation: after scoring, retrain on DATA and these documents."),
    ] = False,
    test: Annotated[
        str | None, typer.Option(help="Test documents, scored with the model and with TF-IDF + linear SVM.")
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            help="More labeled documents, such as corrections from the web app; they override DATA, and training "
            "continues from the model in OUT, if there is one. Repeatable."
        ),
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="With --add: train from scratch.")] = False,
    new_classes: Annotated[
        bool, typer.Option("--new-classes", help="With --add: allow labels that are not in DATA.")
    ] = False,
    keep_examples: Annotated[
        bool,
        typer.Option("--keep-examples", help="Store three short documents per class, as examples in the web app."),
    ] = False,
    stream: Annotated[
        bool | None,
        typer.Option(help="Read DATA from disk during training; by default above 1 GB and under torchrun."),
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="With --stream: folder for packed graphs.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With --stream: processes that read text; by default one per core.")
    ] = None,
    epoch_documents: Annotated[
        int | None, typer.Option(min=1, help="With --stream: maximal number of documents per epoch.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume interrupted training from its checkpoint, if there is one.")
    ] = False,
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

    Example: `mpad fit 'corpus/*.parquet' --stream --out my-model`

    Example: `torchrun --nproc-per-node 2 -m mpad fit 'corpus/*.parquet' --resume --out my-model`

    A tenth of the documents is held out, to compare the model with TF-IDF + linear SVM. The default preset also
    fits the weights of its parts on them, and the other presets choose their epoch. Equal texts are never split.

    Ctrl-C stops training and keeps the model so far. After every epoch a checkpoint is written to OUT.checkpoint: after
    a crash, the same command with --resume continues and produces the same model.
    """
    from mpad.registry import find
    from mpad.storage.model_folder import check_destination

    find(model)
    check_destination(out)
    check_new(out, force or resume or bool(add))
    data: Files = files[0] if len(files) == 1 else files
    stream_options = drop_none(cache=cache, workers=workers, epoch_documents=epoch_documents)
    streamed = should_stream(data, stream, stream_options)
    documents = None if streamed else read_labeled_documents(data, text, label, "train", separator)
    from mpad.estimator.classifier import TextClassifier
    from mpad.estimator.training_card import closing_lines
    from mpad.paper import zoo
    from mpad.text.distilled import missing_hint

    shared = {
        "tokenizer": tokenizer,
        "dropout": dropout,
        "class_weight": "balanced" if balanced else None,
        "device": device,
        "random_state": seed,
        **vector_option(vectors),
        **drop_none(max_epochs=max_epochs, patience=patience, batch_size=batch_size, learning_rate=learning_rate),
    }
    mpad_options = {
        "preset": preset,
        "features": features,
        "steps": steps,
        "hidden": hidden,
        "window": window,
        "directed": directed,
        "members": members,
    }
    if model == "mpad":
        classifier = zoo.make("mpad", **mpad_options, **shared).set_params(variant=variant)
    else:
        classifier = zoo.make_with(model, shared)
    classifier.check_extras()
    hint = missing_hint() if model == "mpad" and features == WORDS and not vectors else None
    if hint is not None:
        typer.echo(hint, err=True)
    if documents is None:
        named, examples = None if model == "mpad" else model, keep_examples or None
        refused = drop_none(model=named, validation=validation, test=test, add=add, keep_examples=examples)
        run_stream(
            classifier, data, out, (one_column(text, "--text"), label, separator), stream_options, resume, list(refused)
        )
        return
    texts, labels = _apply_corrections(documents.texts, documents.labels or [], add or [], separator, new_classes)
    if add and not anew and model == "mpad":
        classifier = _load_for_warm_start(classifier, out)
    known = documents.columns
    held = None if validation is None else read_labeled(validation, text, label, "test", separator, known)
    tested = None if test is None else read_labeled(test, text, label, "test", separator, known)
    checkpoint = out.resolve().with_name(f"{out.resolve().name}.checkpoint")
    kept = _train(classifier, texts, labels, held, refit, checkpoint, resume, max_epochs)
    classifier.card_ |= {"data": describe_source(data), **column_entries(known, separator)}
    if keep_examples:
        classifier.card_["examples"] = pick_examples(texts, labels)
    _save(classifier, out)
    if isinstance(classifier, TextClassifier):  # only networks write checkpoints
        checkpoint.unlink(missing_ok=True)
    plain = [f"{len(texts):,} documents, {len(classifier.classes_)} classes"]
    for line in [*kept, *(closing_lines(classifier) if isinstance(classifier, TextClassifier) else plain)]:
        typer.echo(line, err=True)
    if tested is not None:
        typer.echo(_test_line(classifier, texts, labels, *tested), err=True)
    more = f', mpad explain {out} "some text"' if model == "mpad" else ""
    typer.echo(f"saved to {out}; next: mpad predict {out} DATA{more}", err=True)


def _apply_corrections(
    texts: list[str], labels: list[Any], files: list[str], separator: str | None, new_classes: bool
) -> tuple[list[str], list[Any]]:
    """Add the documents of further files; for a known text, the label of the last file replaces its label."""
    if not files:
        return texts, labels
    further: dict[str, Any] = {}
    for file in files:
        further |= dict(zip(*read_labeled(file, None, None, "train", separator), strict=True))
    if {type(one) for one in labels} == {list} != {type(one) for one in further.values()}:
        raise InputError("documents have many labels: give the separator of those in --add by --separator")
    if {type(one) for one in further.values()} != {type(one) for one in labels}:
        labels, further = [str(one) for one in labels], {one: str(own) for one, own in further.items()}
    known_labels = {name for own in as_lists(labels) for name in own}
    unknown = sorted({name for own in as_lists(list(further.values())) for name in own} - known_labels)
    if unknown and not new_classes:
        raise InputError(
            f"--add has labels that DATA does not have: {', '.join(unknown[:5])} (DATA has: "
            f"{', '.join(sorted(known_labels)[:8])}); correct them, or give --new-classes if they are meant"
        )
    corrected = [further.get(one, own) for one, own in zip(texts, labels, strict=True)]
    changed = sum(one != own for one, own in zip(corrected, labels, strict=True))
    labels = corrected
    known = set(texts)
    new = {one: own for one, own in further.items() if one not in known}
    typer.echo(f"{changed:,} labels corrected, {len(new):,} documents added", err=True)
    return [*texts, *new], [*labels, *new.values()]


def _load_for_warm_start(classifier: "TextClassifier", out: Path) -> "TextClassifier":
    """Return the model in OUT with these settings, to continue its training; the new model if there is none."""
    if not (out / "config.json").exists():
        return classifier
    earlier = type(classifier).load(out, classifier.device)
    typer.echo(f"training continues from the model in {out} (--anew trains from scratch)", err=True)
    earlier.set_params(**{**classifier.get_params(deep=False), "warm_start": True})
    return earlier


def _train(
    classifier: "TextClassifier | PlainClassifier",
    texts: list[str],
    labels: list[Any],
    held: tuple[list[str], list[Any]] | None,
    refit: bool,
    checkpoint: Path,
    resume: bool,
    max_epochs: int | None,
) -> list[str]:
    """Fit with a progress bar; return a line on the selected epoch, if it is not the last."""
    from mpad.estimator.classifier import TextClassifier

    if not isinstance(classifier, TextClassifier):
        if resume or held:
            raise InputError(f"--resume and --validation are for networks; '{classifier.kind}' has no epochs")
        classifier.fit(texts, labels)
        return []
    networks = getattr(classifier, "members", 1)
    if resume and networks > 1:
        raise InputError("--resume is for one network, not for several members")
    if resume and not checkpoint.exists():
        typer.echo(f"{checkpoint}: no checkpoint; starting with the first epoch", err=True)
    kept_at = checkpoint if networks == 1 else None
    options: dict[str, Any] = {"checkpoint": kept_at, "resume": resume, "keep_interrupted": True}
    with classifier.progress_bar() as sink:
        classifier.fit(texts, labels, validation=held, refit=refit, sink=sink, **options)
    if max_epochs is not None and classifier.n_iter_ > max_epochs:
        typer.echo(f"{classifier.n_iter_} epochs were done already, more than --max-epochs {max_epochs}", err=True)
    return epoch_lines(classifier)


def _test_line(classifier: Any, texts: list[str], labels: list[Any], new: list[str], truth: list[Any]) -> str:
    """Return the scores of the model and a linear SVM on test documents; unknown labels count as mistakes."""
    from mpad.estimator.held_out_scores import wilson
    from mpad.evaluate.label_scores import score_labels
    from mpad.paper import zoo

    many = classifier.labels_.multilabel

    def measure(model: Any) -> float:
        predicted = model.predict(new)
        if many:
            return 100 * score_labels(model.labels_, truth, predicted > 0).micro_f1.value
        return 100 * sum(str(one) == str(own) for one, own in zip(predicted.tolist(), truth, strict=True)) / len(truth)

    baseline = zoo.make("tfidf-svm").fit(texts, labels)
    score = measure(classifier)
    share = wilson(score / 100 * len(new), len(new))
    interval = "" if many else f"95 % interval {100 * share.low:.1f} to {100 * share.high:.1f}; "
    result = f"test {'micro-F1' if many else 'accuracy'} {score:.1f} % ({interval}{len(new):,} documents)"
    return f"{result}; on the same documents: TF-IDF + linear SVM {measure(baseline):.1f} %"


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
