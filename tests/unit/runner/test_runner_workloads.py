"""The three workloads: right data, repeatable, and pathologies that change the time and never the result."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tracelock.errors import TracelockError
from tracelock.runner.loader import loader_options, make_loader, to_device
from tracelock.runner.loop import Budget, Loop
from tracelock.runner.precision import Update, autocast, make_optimizer, prepare_model
from tracelock.runner.process import seed_everything
from tracelock.runner.protocol import Limits
from tracelock.runner.settings import Settings, resolve
from tracelock.runner.workloads import images, jpegs, mlp, tables, transformer

Modules = pytest.mark.parametrize("name", ["images", "mlp", "transformer"])
MODULES = {"images": images, "mlp": mlp, "transformer": transformer}
SMALL: dict[str, dict[str, Any]] = {
    "images": {"images": 16, "image_size": 48, "crop_size": 32, "width": 4, "batch_size": 8},
    "mlp": {"records": 128, "item_cost": 1},
    "transformer": {"sequences": 32, "length": 12, "width": 16, "layers": 1, "batch_size": 8},
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small operators on several threads mostly wait for each other where other programs use the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def settings_of(name: str, folder: Path, device: str = "cpu", **changes: Any) -> Settings:
    given_ = {**SMALL[name], **({"data_dir": str(folder / "data")} if name == "images" else {}), **changes}
    return Settings(resolve(given_, MODULES[name].SETTINGS), device=device, seed=5)


def losses_of(settings: Settings, name: str, steps: int) -> list[float]:
    seed_everything(settings.seed)
    loop = Loop(MODULES[name].build(settings), "cpu", Budget(Limits(None, None, None)))
    losses = loop.run(steps).losses()
    assert losses is not None
    return losses


@Modules
def test_a_workload_trains_and_repeats_itself(name: str, tmp_path: Path) -> None:
    first, second = (losses_of(settings_of(name, tmp_path), name, 12) for _ in range(2))
    assert first == second
    other = settings_of(name, tmp_path)
    other.seed = 6
    assert losses_of(other, name, 12) != first


@pytest.mark.parametrize(
    ("name", "changes", "steps"),
    [("mlp", {}, 20), ("transformer", {"vocabulary": 20, "learning_rate": 0.01}, 60), ("images", {"images": 8}, 30)],
)
def test_a_workload_learns(name: str, changes: dict[str, Any], steps: int, tmp_path: Path) -> None:
    losses = losses_of(settings_of(name, tmp_path, **changes), name, steps)
    assert sum(losses[-4:]) < 0.8 * sum(losses[:4])


@Modules
@pytest.mark.parametrize("change", [{"amp": "bf16"}, {"channels_last": True}, {"optimizer_foreach": True}])
def test_standard_settings_keep_the_result_about_the_same(name: str, change: dict[str, Any], tmp_path: Path) -> None:
    if change == {"channels_last": True} and name != "images":
        pytest.skip("channels_last is for images")
    plain = losses_of(settings_of(name, tmp_path), name, 3)
    assert losses_of(settings_of(name, tmp_path, **change), name, 3) == pytest.approx(plain, rel=0.05)


@Modules
def test_every_setting_is_looked_at(name: str, tmp_path: Path) -> None:
    settings = settings_of(name, tmp_path, non_blocking=True)
    losses_of(settings, name, 2)
    by_the_runner = {"threads", "matmul_precision", "cudnn_benchmark"}
    # Workers' settings are looked at as a group; what is left over would be a setting without effect.
    assert set(settings) - settings.read - by_the_runner <= {"stacks"}


@Modules
def test_the_table_of_a_workload_is_the_one_that_studies_read(name: str) -> None:
    assert tables.BY_WORKLOAD[f"tracelock.runner.workloads.{name}:build"] is MODULES[name].SETTINGS
    with pytest.raises(TracelockError, match="did you mean 'batch_size'"):
        resolve({"batchsize": 3}, MODULES[name].SETTINGS)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("mlp", {"stacks": 100}, "settings.stacks: is 100, which does not divide 512"),
        ("transformer", {"heads": 3}, "settings.heads: is 3, which does not divide width 16"),
        ("mlp", {"cuda_graph": True}, "settings.cuda_graph: is true, but this run has no GPU"),
        ("mlp", {"amp": "fp16"}, "settings.amp: is 'fp16', which needs a GPU"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_first_step(
    name: str, change: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(TracelockError, match=says):
        MODULES[name].build(settings_of(name, tmp_path, **change))


@given(st.sampled_from([1, 2, 8, 64, 256, 512]), st.integers(1, 9))
def test_both_ways_to_collate_give_the_same_batch(stacks: int, count: int) -> None:
    records = mlp.Records(count, 1, seed=3)
    items = [records[index] for index in range(count)]
    one, other = mlp.collate_cat(items), mlp.StackFields(mlp.FEATURES // stacks)(items)
    assert one[0].shape == (count, 512)
    assert torch.equal(one[0], other[0])
    assert torch.equal(one[1], other[1])
    assert other[0].is_contiguous()


def test_collate_stack_calls_stack_hundreds_of_times_and_cat_calls_cat_once(tmp_path: Path) -> None:
    counts = {}
    for collate in ("stack", "cat"):
        loader = mlp.build(settings_of("mlp", tmp_path, collate=collate)).loader
        batches = iter(loader)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            next(batches)
        counts[collate] = {event.key: event.count for event in profiler.key_averages()}
    assert counts["stack"]["aten::stack"] == 256
    assert counts["cat"].get("aten::stack", 0) == 0
    assert counts["cat"]["aten::cat"] == 1


def test_records_depend_on_seed_and_place_alone() -> None:
    one, two, other = mlp.Records(4, 1, 1), mlp.Records(4, 3, 1), mlp.Records(4, 1, 2)
    for index in range(4):
        assert torch.equal(one[index][0], two[index][0])
        assert one[index][1] == two[index][1]
    assert not torch.equal(one[0][0], other[0][0])


@given(st.integers(1, 400), st.integers(1, 400))
def test_crops_lie_inside_the_image(width: int, height: int) -> None:
    left, top, right, bottom = images.crop_box(width, height)
    assert 0 <= left < right <= width + 1e-9
    assert 0 <= top < bottom <= height + 1e-9


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.jpg")
    }


def test_images_are_real_jpeg_files_made_once_and_always_the_same(tmp_path: Path) -> None:
    files = jpegs.image_files(tmp_path / "a", 20, 40)
    assert [kind for _, kind in files] == [number % 8 for number in range(20)]
    assert all(path.read_bytes()[:3] == b"\xff\xd8\xff" for path, _ in files)
    made = files[0][0].stat().st_mtime_ns
    assert jpegs.image_files(tmp_path / "a", 20, 40) == files
    assert files[0][0].stat().st_mtime_ns == made
    jpegs.image_files(tmp_path / "b", 20, 40)
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert len(set(digests(tmp_path / "a").values())) == 20
    image, kind = images.Jpegs(files, 16)[9]
    assert (image.shape, image.dtype, kind) == ((3, 16, 16), torch.float32, 1)
    assert abs(image.mean()) < 3


def test_decoding_gives_the_pixels_of_the_file_channel_by_channel(tmp_path: Path) -> None:
    image_module, _ = jpegs.pillow()
    path = tmp_path / "plain.png"
    image_module.new("RGB", (40, 40), (255, 0, 51)).save(path)
    image, _ = images.Jpegs([(path, 0)], 8)[0]
    expected = [(1 - 0.485) / 0.229, (0 - 0.456) / 0.224, (0.2 - 0.406) / 0.225]
    for channel, value in enumerate(expected):
        assert torch.allclose(image[channel], torch.tensor(value), atol=1e-5)


def test_several_makers_of_images_at_once_make_them_once(tmp_path: Path) -> None:
    """A dead maker's half-made folder lies there, too."""
    dead = tmp_path / "d" / ".24x32px-v1.part" / "class_0"
    dead.mkdir(parents=True)
    (dead / "000000.jpg").write_text("half")
    code = (
        "import sys; from pathlib import Path; from tracelock.runner.workloads import jpegs\n"
        "made = jpegs._make\n"
        "jpegs._make = lambda *a: (print('made'), made(*a))\n"
        "[p.read_bytes() for p, _ in jpegs.image_files(Path(sys.argv[1]), 24, 32)]"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(jpegs.__file__).parents[3])}
    makers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "d")], env=environment, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    said = [maker.communicate(timeout=60)[0] for maker in makers]
    assert [maker.returncode for maker in makers] == [0, 0, 0]
    assert b"".join(said) == b"made\n"
    assert len(digests(tmp_path / "d")) == 24
    assert not dead.exists()


def test_without_pillow_the_workload_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(TracelockError, match="needs Pillow here: pip install pillow") as caught:
        images.build(settings_of("images", tmp_path))
    assert caught.value.exit_code == 1


def test_the_encoder_sees_only_what_came_before(tmp_path: Path) -> None:
    settings = settings_of("transformer", tmp_path)
    model = transformer.Encoder(settings, 11).eval()
    tokens = torch.randint(100, (2, 11))
    changed = tokens.clone()
    changed[:, 6] = (changed[:, 6] + 1) % 100
    before, after = model(tokens), model(changed)
    assert torch.allclose(before[:, :6], after[:, :6], atol=1e-5)
    assert not torch.allclose(before[:, 6], after[:, 6], atol=1e-3)


@pytest.mark.parametrize(("workers", "prefetch"), list(itertools.product([0, 2], [None, 4])))
def test_loader_options_are_those_that_pytorch_takes(workers: int, prefetch: int | None) -> None:
    values = {"num_workers": workers, "batch_size": 3, "pin_memory": True, "persistent_workers": bool(workers)}
    if workers:
        values["prefetch_factor"] = prefetch
    for device in ("cpu", "cuda:0"):
        options = loader_options(Settings(resolve(values), device, 3))
        assert options["pin_memory"] is (device != "cpu")
        assert ("persistent_workers" in options) is (workers > 0)
        assert ("prefetch_factor" in options) is (workers > 0 and prefetch is not None)
        assert options["generator"].initial_seed() == 3
        torch.utils.data.DataLoader(range(9), **{**options, "pin_memory": False})


def test_more_arguments_of_a_loader_replace_the_usual_ones() -> None:
    loader = make_loader(list(range(8)), Settings(resolve({"batch_size": 4})), shuffle=False)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_nested_batches_go_to_the_device() -> None:
    batch = {"a": (torch.zeros(1), [torch.ones(2)]), "b": "text", "c": 3}
    moved = to_device(batch, Settings(resolve({}), device="meta"))
    assert moved["a"][0].device.type == moved["a"][1][0].device.type == "meta"
    assert (moved["b"], moved["c"]) == ("text", 3)


def test_an_optimizer_without_the_path_asked_for_says_so() -> None:
    weights = [torch.nn.Parameter(torch.ones(1))]
    settings = Settings(resolve({"optimizer_fused": True, "optimizer_foreach": False}))
    with pytest.raises(TracelockError, match=r"optimizer_fused: is set, but LBFGS of torch .* has no such argument"):
        make_optimizer(torch.optim.LBFGS, weights, settings)
    made = make_optimizer(torch.optim.Adam, weights, Settings(resolve({"optimizer_foreach": False})), lr=0.5)
    assert (made.defaults["foreach"], made.defaults["lr"]) == (False, 0.5)


def test_losses_are_scaled_in_half_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    class Scaler:
        calls: ClassVar[list[str]] = []

        def scale(self, loss: torch.Tensor) -> torch.Tensor:
            self.calls.append("scale")
            return loss * 8

        def step(self, optimizer: torch.optim.Optimizer) -> None:
            self.calls.append("step")

        def update(self) -> None:
            self.calls.append("update")

    monkeypatch.setattr("tracelock.runner.precision._grad_scaler", Scaler)
    weight = torch.nn.Parameter(torch.ones(1))
    update = Update(torch.optim.SGD([weight], lr=1.0), Settings(resolve({"amp": "fp16"}), device="cuda:0"))
    update.backward(weight.sum() * 3)
    update.step()
    assert Scaler.calls == ["scale", "step", "update"]
    assert weight.grad is not None
    assert weight.grad.item() == 24


def test_a_model_is_prepared_as_the_settings_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda model: ("compiled", model))
    layer = torch.nn.Conv2d(3, 4, 3)
    kind, model = prepare_model(layer, Settings(resolve({"compile": True, "channels_last": True})))
    assert kind == "compiled"
    assert model.weight.is_contiguous(memory_format=torch.channels_last)
    with autocast(Settings(resolve({"amp": "bf16"}))):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    with autocast(Settings(resolve({}))):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
