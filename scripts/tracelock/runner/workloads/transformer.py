"""A small transformer encoder that learns to predict the next token, trained with AdamW."""

from __future__ import annotations

import torch
from torch import nn

from tracelock.errors import Problem, TracelockError
from tracelock.runner.loader import make_loader
from tracelock.runner.precision import make_optimizer, prepare_model
from tracelock.runner.settings import Settings
from tracelock.runner.step import make_step
from tracelock.runner.workload import Workload
from tracelock.runner.workloads.tables import TRANSFORMER

SETTINGS = TRANSFORMER


class Sequences(torch.utils.data.Dataset[torch.Tensor]):
    """Token sequences in which a token mostly decides the next one; the same seed gives the same sequences."""

    def __init__(self, count: int, length: int, vocabulary: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        follower = torch.randperm(vocabulary, generator=generator)
        tokens = torch.randint(vocabulary, (count, length), generator=generator)
        is_random = torch.rand(count, length, generator=generator) < 0.2
        for at in range(1, length):
            tokens[:, at] = torch.where(is_random[:, at], tokens[:, at], follower[tokens[:, at - 1]])
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self._tokens[index]


class Encoder(nn.Module):
    """Embeddings of tokens and places, encoder layers that see only what came before, scores of the next token."""

    def __init__(self, settings: Settings, length: int) -> None:
        super().__init__()
        width, vocabulary = settings["width"], settings["vocabulary"]
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(
            width, settings["heads"], 4 * width, settings["dropout"], batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, settings["layers"], enable_nested_tensor=False)
        self.scores = nn.Linear(width, vocabulary)
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores (N, length, vocabulary) for tokens (N, length)."""
        hidden = self.layers(self.tokens(tokens) + self.places, mask=self.mask, is_causal=True)
        return self.scores(hidden)  # type: ignore[no-any-return]


def build(settings: Settings) -> Workload:
    """Return the workload.

    Raises
    ------
    TracelockError
        If ``heads`` does not divide ``width``.
    """
    width, heads, length = settings["width"], settings["heads"], settings["length"]
    if width % heads:
        raise TracelockError(Problem("settings.heads", f"is {heads}, which does not divide width {width}"))
    data = Sequences(settings["sequences"], length, settings["vocabulary"], settings.seed)
    sample = torch.zeros(settings["batch_size"], length - 1, dtype=torch.long)
    model = prepare_model(Encoder(settings, length - 1), settings, sample)
    optimizer = make_optimizer(torch.optim.AdamW, model.parameters(), settings, lr=settings["learning_rate"])
    criterion = nn.CrossEntropyLoss()

    def loss_of(tokens: torch.Tensor) -> torch.Tensor:
        scores = model(tokens[:, :-1])
        return criterion(scores.flatten(0, 1), tokens[:, 1:].flatten())  # type: ignore[no-any-return]

    return Workload(make_loader(data, settings), make_step(loss_of, optimizer, settings), model)
