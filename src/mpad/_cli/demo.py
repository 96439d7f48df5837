"""`mpad demo`: everything once, on the embedded corpus."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = (
    "Draw samples from a normal distribution. The generator takes a seed, so the same numbers come back "
    "every time; each draw is independent of the others."
)


def run(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the model to.")] = Path("demo-model"),
    max_epochs: Annotated[int | None, typer.Option(help="Epochs at most; else what the preset says.")] = None,
) -> None:
    """Train, evaluate and explain on the built-in corpus of documentation.

    Example: `mpad demo`
    """
    from rich.console import Console

    console = Console()
    console.print("Reading the documentation of numpy, scipy and scikit-learn …")
    from mpad import zoo
    from mpad._cli.inputs import given
    from mpad._storage.model_folder import check_destination
    from mpad._training.progress import epoch_bar
    from mpad.datasets import load_dataset
    from mpad.estimators.classifier import MPADClassifier

    check_destination(out)
    dataset = load_dataset("docstrings")
    train, test = dataset.train, dataset.test
    console.print(f"{len(train):,} documents to learn from, {len(test):,} to test on, {len(dataset.classes)} areas.\n")
    classifier = MPADClassifier(random_state=0, **given(max_epochs=max_epochs))
    with epoch_bar() as sink:
        classifier.fit(train.texts, train.labels, sink=sink)
    accuracy = classifier.score(test.texts, test.labels)
    baseline = zoo.make("tfidf-svm").fit(train.texts, train.labels).score(test.texts, test.labels)
    console.print(f"\nMPAD                  accuracy {accuracy:.4f}")
    console.print(f"TF-IDF + linear SVM   accuracy {baseline:.4f}   (same split)\n")
    classifier.explain(EXAMPLE).show()
    classifier.save(out)
    console.print(f"\nThe model is in [bold]{out}[/bold]. Next:")
    console.print(f"  mpad evaluate {out} docstrings", highlight=False)
    console.print(f'  echo "Fit a spline through noisy points" | mpad predict {out}', highlight=False)
    console.print(f'  mpad explain {out} "Draw samples from a distribution" --out why.html', highlight=False)
    console.print("  mpad fit your.csv --text TEXT_COLUMN --label LABEL_COLUMN --out your-model", highlight=False)
    if not _on_path():
        console.print("  [dim](mpad is in .venv/bin: source .venv/bin/activate)[/dim]")


def _on_path() -> bool:
    import shutil

    return shutil.which("mpad") is not None
