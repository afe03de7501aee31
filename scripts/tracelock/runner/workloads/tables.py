"""What each workload that comes with tracelock adds to the standard settings. Standard library only."""

from __future__ import annotations

from tracelock.runner.settings import Setting

IMAGES: tuple[Setting, ...] = (
    Setting("data_dir", "str", "data/images", "folder of the image files, made there once"),
    Setting("images", "int", 256, "image files; one epoch", minimum=1),
    Setting("image_size", "int", 448, "edge of a file in pixels", minimum=32),
    Setting("crop_size", "int", 64, "edge of a training image in pixels", minimum=16),
    Setting("width", "int", 8, "channels of the first convolution", minimum=1),
    Setting("learning_rate", "float", 0.05, "of SGD with momentum 0.9", minimum=0),
)
MLP: tuple[Setting, ...] = (
    Setting("batch_size", "int", 64, "records in a batch", minimum=1),
    Setting("records", "int", 2048, "records; one epoch", minimum=1),
    Setting("item_cost", "int", 10, "how often a record is unpacked before it is used", minimum=1),
    Setting("collate", "str", "cat", "a batch by one torch.cat or by many torch.stack", allowed=("cat", "stack")),
    Setting("stacks", "int", 256, "calls of torch.stack a batch where collate is stack; divides 512", minimum=1),
    Setting("learning_rate", "float", 0.001, "of Adam", minimum=0),
)
TRANSFORMER: tuple[Setting, ...] = (
    Setting("batch_size", "int", 16, "sequences in a batch", minimum=1),
    Setting("sequences", "int", 512, "sequences; one epoch", minimum=1),
    Setting("length", "int", 128, "tokens in a sequence", minimum=2),
    Setting("vocabulary", "int", 1000, "different tokens", minimum=2),
    Setting("layers", "int", 2, "encoder layers", minimum=1),
    Setting("width", "int", 128, "features of a token", minimum=8),
    Setting("heads", "int", 4, "attention heads; divides width", minimum=1),
    Setting("dropout", "float", 0.1, "share of activations set to 0 in training", minimum=0),
    Setting("learning_rate", "float", 0.0005, "of AdamW", minimum=0),
)
BY_WORKLOAD: dict[str, tuple[Setting, ...]] = {
    "tracelock.runner.workloads.images:build": IMAGES,
    "tracelock.runner.workloads.mlp:build": MLP,
    "tracelock.runner.workloads.transformer:build": TRANSFORMER,
}
