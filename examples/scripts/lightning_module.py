"""A Lightning module and its Trainer, with a validation loop. Random data."""

import lightning as L
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        values = torch.randn(64, 16)
        return values.cumsum(0).sin(), index % 4


class LitClassifier(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.rnn = torch.nn.GRU(16, 32, batch_first=True)
        self.head = torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    trainer = L.Trainer(max_epochs=2, accelerator="auto", logger=False, enable_checkpointing=False)
    trainer.fit(
        LitClassifier(),
        DataLoader(Sequences(1600), batch_size=32, shuffle=True),
        DataLoader(Sequences(160), batch_size=32),
    )
