"""`mpad fit`: train a classifier and save it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpad.cli.inputs import Data, LabelColumn, TextColumn, given, labelled, vector_option
from mpad.estimators.presets import DEFAULT_PRESET
from mpad.graph.build import GraphConfig
from mpad.nn.config import MPADConfig

if TYPE_CHECKING:
    from mpad.baselines.base import PlainClassifier
    from mpad.estimators.text_classifier import TextClassifier


def run(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the model to.")],
    text: TextColumn = None,
    label: LabelColumn = None,
    model: Annotated[str, typer.Option(help="mpad, or a rival: cnn, dan, hn-att, tfidf-svm …")] = "mpad",
    variant: Annotated[str, typer.Option(help="Of mpad: mpad, sentence-att, clique or path.")] = "mpad",
    preset: Annotated[str, typer.Option(help="Of mpad: best, paper or authors.")] = DEFAULT_PRESET,
    vectors: Annotated[
        list[str] | None,
        typer.Option(
            help="auto, a file of word vectors, the name or folder of a Model2Vec or sentence-transformers model, "
            "corpus, or none; several stand side by side."
        ),
    ] = None,
    tokenizer: Annotated[str, typer.Option(help="kim, kim-cased, unicode or module:function.")] = "kim",
    steps: Annotated[int, typer.Option(help="Rounds of messages.")] = MPADConfig.steps,
    hidden: Annotated[int, typer.Option(help="Width of the network.")] = MPADConfig.hidden,
    window: Annotated[int, typer.Option(help="Size of the co-occurrence window.")] = GraphConfig.window,
    directed: Annotated[bool, typer.Option(help="Edges point with the text.")] = True,
    max_epochs: Annotated[int | None, typer.Option(help="Epochs at most; else what the preset says.")] = None,
    patience: Annotated[int | None, typer.Option(help="Epochs without progress before stopping.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Documents a step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Adam's step size.")] = None,
    dropout: Annotated[float, typer.Option(help="Share of dropped activations.")] = MPADConfig.dropout,
    balanced: Annotated[bool, typer.Option("--balanced", help="Weigh classes alike, however rare.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    seed: Annotated[int, typer.Option(help="For results that repeat.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where training was cut off, if it was.")] = False,
) -> None:
    """Train a classifier on labelled documents and save it.

    Example: `mpad fit reviews.csv --text review --label sentiment --out my-model`

    Example: `mpad fit docstrings --preset paper --out my-model --max-epochs 30`

    Example: `mpad fit reviews.csv --model tfidf-svm --out rival`

    A tenth of the documents is held out: on these the model is compared with TF-IDF + linear SVM, and presets other
    than best choose their epoch. Ctrl-C ends training and keeps what there is. After every epoch all that is needed to
    go on is written to OUT.checkpoint: if the machine goes down, the same command with --resume ends with the model
    that it would have had.
    """
    from mpad.storage.model_folder import check_destination

    check_destination(out)
    from mpad import zoo
    from mpad.cli.progress import epoch_bar
    from mpad.errors import InputError
    from mpad.estimators.text_classifier import TextClassifier
    from mpad.text.distilled import missing_hint

    shared = {
        "tokenizer": tokenizer,
        "dropout": dropout,
        "class_weight": "balanced" if balanced else None,
        "device": device,
        "random_state": seed,
        **vector_option(vectors),
        **given(max_epochs=max_epochs, patience=patience, batch_size=batch_size, learning_rate=learning_rate),
    }
    own = {"preset": preset, "steps": steps, "hidden": hidden, "window": window, "directed": directed}
    if model == "mpad":
        classifier = zoo.make("mpad", **own, **shared).set_params(variant=variant)
    else:
        classifier = zoo.make_with(model, shared)
    classifier.check_extras()
    hint = missing_hint() if model == "mpad" and not vectors else None
    if hint is not None:
        typer.echo(hint, err=True)
    texts, labels = labelled(data, text, label, "train")
    kept = "learnt in one go"
    checkpoint = out.resolve().with_name(f"{out.resolve().name}.checkpoint")
    if isinstance(classifier, TextClassifier):
        if resume and not checkpoint.exists():
            typer.echo(f"{checkpoint}: no checkpoint; beginning with the first epoch", err=True)
        with epoch_bar() as sink:
            classifier.fit(texts, labels, sink=sink, checkpoint=checkpoint, resume=resume, keep_interrupted=True)
        kept = _kept(classifier)
        if max_epochs is not None and classifier.n_iter_ > max_epochs:
            typer.echo(f"{classifier.n_iter_} epochs were done already, more than --max-epochs {max_epochs}", err=True)
    elif resume:
        raise InputError(f"--resume is for networks; '{model}' learns in one go")
    else:
        classifier.fit(texts, labels)
    classifier.card_["data"] = Path(data).name
    _save(classifier, out)
    if isinstance(classifier, TextClassifier):  # whose training wrote it, or went on from it
        checkpoint.unlink(missing_ok=True)
    typer.echo(f"{len(texts):,} documents, {len(classifier.classes_)} classes; {kept}", err=True)
    if isinstance(classifier, TextClassifier):
        _compare(classifier)
    more = f', mpad explain {out} "some text"' if model == "mpad" else ""
    typer.echo(f"saved to {out}; next: mpad predict {out} DATA{more}", err=True)


def _save(classifier: "TextClassifier | PlainClassifier", out: Path) -> None:
    """Save the model; where that fails after all, save it elsewhere rather than lose it."""
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


def _compare(classifier: "TextClassifier") -> None:
    """Say how well the model does on held-out documents, and what a linear model does there."""
    accuracy = dict(classifier.held_out_accuracy_)
    if not accuracy:
        return
    own = accuracy.pop("mpad")
    names = {"tfidf-svm": "TF-IDF + linear SVM", "linear-stack": "linear stack"}
    others = ", ".join(f"{names[name]} {100 * value:.1f} %" for name, value in accuracy.items())
    held = classifier.card_["held_out"]
    typer.echo(f"held-out accuracy {100 * own:.1f} % ({held:,} documents); on the same ones {others}", err=True)
    if classifier.answers_by_ != "mpad":
        typer.echo(f"{names[classifier.answers_by_]} alone is clearly better there: the model answers by it", err=True)


def _kept(classifier: "TextClassifier") -> str:
    stopped = "interrupted; kept" if classifier.interrupted_ else "kept"
    best = classifier.history_[max(classifier.best_epoch_ - 1, 0)]
    held = classifier.card_["held_out"]
    on = f"{held:,} held-out documents" if held else "the training documents"
    return f"{stopped} epoch {classifier.best_epoch_}, accuracy {best.validation_accuracy:.4f} on {on}"
