"""Label documents that help most: choose the next ones, learn from each batch, and lose nothing."""

from mpad.labeling.select import choose_next
from mpad.labeling.session import Document, LabelingSession, Point

__all__ = ["Document", "LabelingSession", "Point", "choose_next"]
