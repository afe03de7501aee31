"""Fine-tuning with Hugging Face's Trainer: a tiny random model and random tokens, nothing is downloaded."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Reviews(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        words = torch.randint(5, 500, (48,), generator=generator)
        return {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": index % 2}


if __name__ == "__main__":
    config = BertConfig(
        vocab_size=512, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128
    )
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=8,
            num_train_epochs=1,
            report_to=[],
            save_strategy="no",
            eval_strategy="epoch",
        )
        model = BertForSequenceClassification(config)
        trainer = Trainer(model=model, args=args, train_dataset=Reviews(800), eval_dataset=Reviews(64))
        trainer.train()
