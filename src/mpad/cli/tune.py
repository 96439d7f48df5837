"""`mpad tune`: search for the best settings and save a model with them."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from mpad.cli.inputs import (
    Address,
    Data,
    Device,
    EngineName,
    EngineOption,
    Force,
    LabelColumn,
    Reader,
    Seed,
    TextColumn,
    Vectors,
    card_entries,
    one_column,
    vector_option,
)
from mpad.cli.output import check_new
from mpad.errors import InputError


def run(
    data: Data,
    out: Annotated[Path, Option("--out", "-o", help="Folder to write the best model to.")],
    text: TextColumn = None,
    label: LabelColumn = None,
    minutes: Annotated[float, Option(help="Search time in minutes; a running trial is allowed to finish.")] = 10.0,
    trials: Annotated[
        int | None, Option(help="Maximal number of trials, including earlier ones; by default no limit.")
    ] = None,
    vectors: Vectors = None,
    plot: Annotated[Path | None, Option(help="Plot the trials to this file (.png, .svg or .pdf).")] = None,
    device: Device = "auto",
    seed: Seed = 0,
    engine: EngineOption = EngineName.local,
    workers: Annotated[
        int | None, Option(min=1, help="With --engine ray: concurrent trials; by default one per core or GPU.")
    ] = None,
    address: Address = None,
    force: Force = False,
) -> None:
    """Search for the best settings on your documents and save a model with them.

    Example: `mpad tune reviews.csv --minutes 10 --out my-model --plot trials.png`

    Example: `mpad tune reviews.csv --minutes 60 --out my-model --engine ray --workers 8`

    The first trial is the default. Trials are compared by likelihood on a fifth of the documents; the best setting is
    then fitted on all documents. Trials are stored in OUT.study, and the same command continues the search.
    """
    from mpad.storage.model_folder import check_destination

    if engine is EngineName.local and (workers is not None or address is not None):
        raise InputError("--workers and --address are for --engine ray")
    check_destination(out)
    check_new(out, force)
    check_new(plot, force)
    documents = Reader.of(text, one_column(label, "--label")).documents(data, "train")
    texts, labels = documents.texts, documents.labels or []
    from mpad.estimator.classifier import MPADClassifier
    from mpad.estimator.training_card import closing_lines
    from mpad.evaluate.tuning import Trial, plot_trials, tune
    from mpad.extras import require
    from mpad.scale.ray_trials import ray_runner

    require("optuna", extra="tune")
    if plot is not None:
        require("matplotlib", extra="plots")
    fixed = {"device": device, "random_state": seed, **vector_option(vectors)}

    def report(trial: Trial) -> None:
        settings = (
            ", ".join(
                f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in trial.settings.items()
            )
            or "the default"
        )
        scores = f"log-likelihood {trial.log_likelihood:.4f}, accuracy {trial.accuracy:.4f}"
        typer.echo(f"trial {trial.number}: {scores} ({settings})", err=True)

    study = out.resolve().with_name(f"{out.resolve().name}.study")
    on_ray = engine is EngineName.ray
    with ray_runner(address, workers, device.startswith("cuda")) if on_ray else nullcontext() as runner:
        result = tune(
            texts, labels, minutes=minutes, study=study, most_trials=trials, done=report, runner=runner, **fixed
        )
    best = result[0]
    default = next(trial for trial in result if trial.number == 0)
    scores = f"log-likelihood {best.log_likelihood:.4f}, the default's {default.log_likelihood:.4f}"
    typer.echo(f"best of {len(result)}: trial {best.number}, {scores}; all trials are kept in {study.name}", err=True)
    typer.echo(f"fitting it on all {len(texts):,} documents", err=True)
    classifier = MPADClassifier(**{**best.settings, **fixed}).fit(texts, labels)
    classifier.card_ |= card_entries(data, documents.columns)
    classifier.save(out)
    for line in closing_lines(classifier):
        typer.echo(line, err=True)
    if best.number == 0:
        typer.echo("no setting was better than the default, which was saved", err=True)
    if plot is not None:
        plot_trials(result, plot)
    typer.echo(f"saved to {out}; next: mpad predict {out} DATA", err=True)
