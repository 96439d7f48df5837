"""`mpad demo`: train, compare, explain and save a model on the built-in tweets."""

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from mpad.cli.inputs import Force, card_entries
from mpad.cli.options import Parameters, expand_parameters
from mpad.cli.output import check_new

NEGATED = "I don't like this movie."


@expand_parameters
def run(
    out: Annotated[Path, Option("--out", "-o", help="Folder to write the model to.")] = Path("demo-model"),
    *,
    training: Annotated[dict[str, Any], Parameters("MPADClassifier", "max_epochs")],
    force: Force = False,
) -> None:
    """Train on the built-in tweets, compare with a linear SVM, and explain a negated sentence.

    Example: `mpad demo`
    """
    from rich.console import Console

    from mpad.storage.model_folder import check_destination

    console = Console()
    check_destination(out)
    check_new(out, force)
    console.print("Reading 3,432 rated tweets …")
    from mpad.estimator.classifier import MPADClassifier
    from mpad.estimator.held_out_scores import wilson
    from mpad.paper import zoo
    from mpad.paper.datasets import load_dataset

    dataset = load_dataset("tweets")
    train, test = dataset.train, dataset.test
    assert train.labels is not None and test.labels is not None
    console.print(f"{len(train):,} documents to train on, {len(test):,} to test on.\n")
    classifier = MPADClassifier(random_state=0, **training)
    with classifier.progress_bar() as sink:
        classifier.fit(train.texts, train.labels, sink=sink)
    baseline = zoo.make("tfidf-svm").fit(train.texts, train.labels)
    console.print("\nAccuracy on the test documents:")
    for name, model in (("mpad", classifier), ("TF-IDF + linear SVM", baseline)):
        share = wilson(round(model.score(test.texts, test.labels) * len(test)), len(test))
        console.print(f"  {name:<20} {share}", highlight=False)
    console.print("\nExplanation of a negated sentence:\n")
    classifier.explain(NEGATED).show()
    classifier.card_ |= {**card_entries("tweets", None), "examples": train.examples()}
    classifier.save(out)
    console.print(f"\nThe model is in [bold]{out}[/bold]. Next:")
    console.print(f"  mpad serve {out}                       the web app, at http://127.0.0.1:8000", highlight=False)
    console.print(f'  mpad predict {out} "what a great day"', highlight=False)
    console.print(f"  mpad evaluate {out} tweets", highlight=False)
    console.print("  mpad fit your.csv --out your-model              on your own documents", highlight=False)
    if not _on_path():
        console.print("  [dim](mpad is in .venv/bin: source .venv/bin/activate)[/dim]")


def _on_path() -> bool:
    import shutil

    return shutil.which("mpad") is not None
