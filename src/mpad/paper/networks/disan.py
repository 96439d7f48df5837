"""DiSAN: directional self-attention, each feature with weights of its own (Shen et al., AAAI 2018)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from mpad import kernels
from mpad.kernels import cuda
from mpad.paper.networks.config import DocumentNetwork, NetworkConfig
from mpad.paper.networks.rows import masked_softmax
from mpad.sequence.batch import WordBatch

_SCALE = 5.0  # c in the paper: keeps the scores within ± 5


@dataclass(frozen=True)
class DiSANConfig(NetworkConfig):
    """Units, and how many words of a document are read: attention costs their square times the units."""

    hidden: int = 300
    longest: int = 128


class DirectionalAttention(nn.Module):
    """One direction (eqs. 13 to 19 of the paper).

    h = ELU(x W + b)    f(h_i, h_j) = c · tanh((h_i W₁ + h_j W₂ + b) / c), masked by direction
    s_j = Σ_i softmax_i(f(h_i, h_j)) ⊙ h_i    u = F ⊙ h + (1 − F) ⊙ s,  F = σ(s W₃ + h W₄ + b)

    x: (rows, longest, in) → u: (rows, longest, hidden). A place with nowhere to look has s = 0.
    """

    def __init__(self, in_width: int, hidden: int, forward: bool) -> None:
        super().__init__()
        self.looks_back = forward
        self.map = nn.Linear(in_width, hidden)
        self.of_other = nn.Linear(hidden, hidden, bias=False)
        self.of_self = nn.Linear(hidden, hidden)
        self.gate_of_context = nn.Linear(hidden, hidden, bias=False)
        self.gate_of_self = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """Words → words in their context."""
        h = functional.elu(self.map(x))
        s = self.attend(h, real)
        gate = torch.sigmoid(self.gate_of_context(s) + self.gate_of_self(h))
        return gate * h + (1 - gate) * s

    def attend(self, h: Tensor, real: Tensor) -> Tensor:
        """Return s: (rows, longest, hidden)."""
        return directional_attention(self.of_other(h), self.of_self(h), h, real, self.looks_back, _SCALE)


class FastDirectionalAttention(DirectionalAttention):
    """Directional attention by a Triton kernel, which does not store all pairs of positions."""

    def attend(self, h: Tensor, real: Tensor) -> Tensor:
        """Return s: (rows, longest, hidden)."""
        if not (h.is_cuda and cuda.takes(h)):
            return super().attend(h, real)
        from mpad.paper.networks import directional_triton  # needs Triton

        parts = self.of_other(h), self.of_self(h), h
        return directional_triton.directional_attention(*parts, real, self.looks_back, _SCALE)


kernels.register(DirectionalAttention, FastDirectionalAttention)


class DiSAN(DocumentNetwork):
    """Both directions, then one vector for the document by attention on each feature.

    u = [DiSA→(x) ; DiSA←(x)]    s = Σ_t softmax_t(ELU(u W₁ + b) W₂ + b) ⊙ u    z = ELU(s W + b)

    x: (words, vector_width) → s: (documents, 2 · hidden) → z: (documents, hidden). Words beyond `longest` are not read.
    """

    def __init__(self, config: DiSANConfig) -> None:
        super().__init__(config)
        width = 2 * config.hidden
        self.directions = nn.ModuleList(
            DirectionalAttention(config.vector_width, config.hidden, forward) for forward in (True, False)
        )
        self.score = nn.Sequential(nn.Linear(width, width), nn.ELU(), nn.Linear(width, width))
        self.dense = nn.Linear(width, config.hidden)
        self.add_classes(config.hidden)

    def document_vectors(self, batch: WordBatch) -> Tensor:
        """Words → z."""
        rows = batch.documents()
        words, real = rows.values[:, : self.config.longest], rows.real[:, : self.config.longest]
        x = self.input_dropout(functional.embedding(words, self.vectors))
        u = torch.cat([direction(x, real) for direction in self.directions], dim=-1)
        s = (masked_softmax(self.score(u), real[..., None], dim=1) * u).sum(1)
        return functional.elu(self.dense(s))


def directional_mask(n: int, forward: bool, device: torch.device | None = None) -> Tensor:
    """Return the mask (j, i) of positions: j attends to earlier ones forwards, to later ones backwards."""
    place = torch.arange(n, device=device)
    return place[:, None] > place[None] if forward else place[:, None] < place[None]


def directional_attention(a: Tensor, b: Tensor, h: Tensor, real: Tensor, looks_back: bool, scale: float) -> Tensor:
    """s_j = Σ_i softmax_i(c · tanh((a_i + b_j) / c)) ⊙ h_i, over the places i before j, or behind it.

    a, b, h, s: (rows, places, width); real: (rows, places) bool; c = `scale`. A place with nowhere to look,
    or that is not real, has s = 0.
    """
    pair = a[:, None] + b[:, :, None]  # (rows, j, i, width)
    allowed = directional_mask(h.shape[1], looks_back, h.device) & real[:, None]
    weights = masked_softmax(scale * torch.tanh(pair / scale), allowed[..., None], dim=2)
    return torch.einsum("rjid,rid->rjd", weights, h) * real[..., None]
