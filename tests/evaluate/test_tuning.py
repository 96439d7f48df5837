"""A search for settings: the default first, what was tried kept, the best model saved."""

import pytest

from mpad import MPADClassifier
from mpad.cli import tune as command
from mpad.errors import InputError
from mpad.evaluate import tuning
from mpad.evaluate.tuning import plot_trials, tune

pytest.importorskip("optuna")
QUICK = {"device": "cpu", "random_state": 0, "vectors": None, "vector_size": 8, "max_epochs": 2}


@pytest.mark.filterwarnings("ignore")
def test_the_default_is_the_first_trial_and_a_study_goes_on(fruit_corpus, tmp_path):
    first = tune(*fruit_corpus, minutes=1, study=tmp_path / "s", most_trials=2, **QUICK)
    assert sorted(trial.number for trial in first) == [0, 1]
    assert next(trial for trial in first if trial.number == 0).settings == {}
    assert first[0].log_likelihood >= first[1].log_likelihood
    seen = []
    more = tune(*fruit_corpus, minutes=1, study=tmp_path / "s", most_trials=3, done=seen.append, **QUICK)
    assert [trial.number for trial in seen] == [2] and len(more) == 3 and {t.number for t in more} == {0, 1, 2}
    pytest.importorskip("matplotlib")
    plot_trials(more, tmp_path / "t.png")
    assert (tmp_path / "t.png").exists()


def test_what_cannot_be_tuned(fruit_corpus):
    with pytest.raises(InputError, match="minutes must be above 0"):
        tune(*fruit_corpus, minutes=0)
    with pytest.raises(InputError, match="single-label data"):
        tune(["a", "b"], [[0, 1], [1, 0]], minutes=1)
    with pytest.raises(InputError, match="too few"):
        tune(["a", "b"], [0, 1], minutes=1)


@pytest.mark.filterwarnings("ignore")
def test_the_command_saves_the_best(fruit_corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        tuning, "_suggest_settings", lambda trial: {"hidden": trial.suggest_categorical("hidden", [16])}
    )
    file = tmp_path / "d.csv"
    rows = "".join(f'"{text}",{label}\n' for text, label in zip(*fruit_corpus, strict=True))
    file.write_text(f"text,label\n{rows}")
    command.run(str(file), tmp_path / "m", minutes=1, trials=2, vectors=["none"], device="cpu", seed=0)
    shown = capsys.readouterr().err
    assert "trial 0" in shown and "trial 1" in shown and "best of 2" in shown
    assert MPADClassifier.load(tmp_path / "m").score(*fruit_corpus) > 0.9 and (tmp_path / "m.study").exists()
