"""Hugging Face's Trainer on a tiny random model, nothing downloaded."""

import sys
import tempfile

import torch
import transformers
from _own import Clock

clock = Clock()
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        words = torch.arange(index, index + 16) % 64
        return {"input_ids": words, "labels": words}


class Ticks(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        clock.tick()


settings = transformers.GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2)
with tempfile.TemporaryDirectory() as folder:
    arguments = transformers.TrainingArguments(
        folder,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=int(sys.argv[1]),
        num_train_epochs=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        logging_strategy="no",
    )
    net = transformers.GPT2LMHeadModel(settings)
    transformers.Trainer(net, arguments, train_dataset=Tokens(), callbacks=[Ticks()]).train()
clock.tell()
