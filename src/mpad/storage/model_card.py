"""Facts about a model's training, shown by `mpad info`: date, number of documents, results."""

from datetime import UTC, datetime
from typing import Any


def model_card(documents: int, **facts: Any) -> dict[str, Any]:
    """Build the card of a training that ends now; facts that are None are left out."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "trained": now,
        "documents": documents,
        **{name: value for name, value in facts.items() if value is not None},
    }
