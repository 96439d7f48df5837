"""`mpad fit`: train a classifier and save it."""

from pathlib import Path
from typing import Annotated

import typer

from mpad.cli.data import Data, LabelColumn, TextColumn, labelled


def run(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the model to.")],
    text: TextColumn = None,
    label: LabelColumn = None,
    variant: Annotated[str, typer.Option(help="mpad, sentence-att, clique or path.")] = "mpad",
    preset: Annotated[str, typer.Option(help="paper or authors.")] = "paper",
    vectors: Annotated[str | None, typer.Option(help="A file of word vectors, or 'corpus'.")] = None,
    tokenizer: Annotated[str, typer.Option(help="kim, kim-cased, unicode or module:function.")] = "kim",
    steps: Annotated[int, typer.Option(help="Rounds of messages.")] = 2,
    hidden: Annotated[int, typer.Option(help="Width of the network.")] = 64,
    window: Annotated[int, typer.Option(help="Size of the co-occurrence window.")] = 2,
    directed: Annotated[bool, typer.Option(help="Edges point with the text.")] = True,
    max_epochs: Annotated[int, typer.Option(help="Epochs at most.")] = 200,
    patience: Annotated[int, typer.Option(help="Epochs without progress before stopping.")] = 20,
    batch_size: Annotated[int, typer.Option(help="Documents a step.")] = 128,
    learning_rate: Annotated[float, typer.Option(help="Adam's step size.")] = 0.001,
    dropout: Annotated[float, typer.Option(help="Share of dropped activations.")] = 0.5,
    balanced: Annotated[bool, typer.Option("--balanced", help="Weigh classes alike, however rare.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    seed: Annotated[int, typer.Option(help="For results that repeat.")] = 0,
) -> None:
    """Train a classifier on labelled documents and save it.

    Example: `mpad fit reviews.csv --text review --label sentiment --out my-model`

    Example: `mpad fit docstrings --out my-model --max-epochs 30`

    A tenth of the documents is held out to choose the best epoch. Ctrl-C ends training and keeps that epoch.
    """
    texts, labels = labelled(data, text, label, "train")
    from mpad.classifier import MPADClassifier
    from mpad.cli.progress import epoch_bar
    from mpad.store import check_destination

    check_destination(out)

    classifier = MPADClassifier(
        variant,  # type: ignore[arg-type] # checked by the estimator, which names the known ones
        preset=preset,
        vectors=vectors,
        tokenizer=tokenizer,
        steps=steps,
        hidden=hidden,
        window=window,
        directed=directed,
        max_epochs=max_epochs,
        patience=patience,
        batch_size=batch_size,
        learning_rate=learning_rate,
        dropout=dropout,
        class_weight="balanced" if balanced else None,
        device=device,
        random_state=seed,
    )
    with epoch_bar(max_epochs) as sink:
        classifier.fit(texts, labels, sink=sink)
    classifier.save(out)
    stopped = "interrupted; kept" if classifier.interrupted_ else "kept"
    if classifier.history_:
        best = classifier.history_[max(classifier.best_epoch_ - 1, 0)]
        kept = f"{stopped} epoch {classifier.best_epoch_}, validation accuracy {best.validation_accuracy:.4f}"
    else:
        kept = "interrupted before the first epoch ended"
    typer.echo(f"{len(texts):,} documents, {len(classifier.classes_)} classes; {kept}", err=True)
    typer.echo(f'saved to {out}; next: mpad predict {out} DATA, mpad explain {out} "some text"', err=True)
