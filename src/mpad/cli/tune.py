"""`mpad tune`: search for settings on your own documents, and save the best model."""

from pathlib import Path
from typing import Annotated

import typer

from mpad.cli.inputs import Data, LabelColumn, TextColumn, labelled, vector_option


def run(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the best model to.")],
    text: TextColumn = None,
    label: LabelColumn = None,
    minutes: Annotated[float, typer.Option(help="How long to search; a trial that has begun is ended.")] = 10.0,
    trials: Annotated[int | None, typer.Option(help="Trials at most, those before counted.")] = None,
    vectors: Annotated[list[str] | None, typer.Option(help="Word vectors, as of `mpad fit`.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the trials to this file (.png, .svg, .pdf).")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    seed: Annotated[int, typer.Option(help="For results that repeat.")] = 0,
) -> None:
    """Search for settings that suit your documents, and save a model with the best of them.

    Example: `mpad tune reviews.csv --minutes 10 --out my-model --plot trials.png`

    The first trial is the default. Trials are compared on a fifth of the documents, by likelihood; the best setting is
    then fitted on all. They are kept in OUT.study: the same command goes on with them.
    """
    from mpad.storage.model_folder import check_destination

    check_destination(out)
    from mpad.estimators.classifier import MPADClassifier
    from mpad.estimators.tuning import Trial, plot_trials, tune
    from mpad.extras import require

    require("optuna", extra="tune")
    if plot is not None:
        require("matplotlib", extra="plots")
    texts, labels = labelled(data, text, label, "train")
    fixed = {"device": device, "random_state": seed, **vector_option(vectors)}

    def said(trial: Trial) -> None:
        what = (
            ", ".join(
                f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in trial.settings.items()
            )
            or "the default"
        )
        scores = f"log-likelihood {trial.log_likelihood:.4f}, accuracy {trial.accuracy:.4f}"
        typer.echo(f"trial {trial.number}: {scores} ({what})", err=True)

    study = out.resolve().with_name(f"{out.resolve().name}.study")
    result = tune(texts, labels, minutes=minutes, study=study, most_trials=trials, done=said, **fixed)
    best = result[0]
    typer.echo(f"best of {len(result)}: trial {best.number}; fitting it on all {len(texts):,} documents", err=True)
    classifier = MPADClassifier(**{**best.settings, **fixed}).fit(texts, labels)
    classifier.card_["data"] = Path(data).name
    classifier.save(out)
    if plot is not None:
        plot_trials(result, plot)
    typer.echo(f"saved to {out}; next: mpad predict {out} DATA", err=True)
