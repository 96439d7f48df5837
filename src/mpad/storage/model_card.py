"""When a model was trained, on how much, and how well it did: what `mpad info` shows of a folder."""

from datetime import UTC, datetime
from typing import Any


def model_card(documents: int, **facts: Any) -> dict[str, Any]:
    """Describe a training that ends now; facts that are None are left out."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "trained": now,
        "documents": documents,
        **{name: value for name, value in facts.items() if value is not None},
    }
