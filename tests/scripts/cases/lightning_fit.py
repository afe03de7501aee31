"""A Lightning module, its Trainer, and a validation loop between the epochs."""

import logging
import os
import warnings

import lightning
import torch
from _own import Clock, dataset, loss_of, model

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
clock = Clock()


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = model()

    def training_step(self, batch, index):
        return loss_of(self.net, batch)

    def validation_step(self, batch, index):
        self.log("loss", loss_of(self.net, batch))

    def on_train_batch_end(self, outputs, batch, index):
        clock.tick()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    default_root_dir=os.environ.get("TMPDIR", "/tmp"),
    num_sanity_val_steps=0,
)
training = torch.utils.data.DataLoader(dataset(240), batch_size=8)
trainer.fit(Module(), training, torch.utils.data.DataLoader(dataset(32), batch_size=8))
clock.tell()
