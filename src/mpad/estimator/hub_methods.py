"""`push_to_hub` and `from_pretrained`, as models of other libraries have them."""

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from mpad.export.hub import fetch, upload
from mpad.text.tokenizer import Tokenizer


class HubMethods:
    """What an estimator that can be saved and loaded has for repositories of models."""

    save: Any
    load: Any

    def push_to_hub(
        self, repo_id: str, *, private: bool | None = None, token: str | None = None, message: str | None = None
    ) -> str:
        """Upload the fitted model with a model card to a repository of the Hugging Face Hub; its address.

        The repository is made if it is not there. Needs the extra `hub`.
        """
        with TemporaryDirectory() as beside:
            folder = Path(beside) / "model"
            self.save(folder)
            return upload(folder, repo_id, private, token, message)

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        cache_dir: str | Path | None = None,
        device: str = "auto",
        tokenizer: str | Tokenizer | Callable[[str], Iterable[str]] | None = None,
    ) -> Self:
        """Load a model from a local folder, or from a repository of that name, of which a snapshot is downloaded.

        A repository needs the extra `hub`; `revision` names a branch, a tag or, to always get the same, a commit.
        """
        loaded: Self = cls.load(fetch(name, revision, token, cache_dir), device, tokenizer)
        return loaded
