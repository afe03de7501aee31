"""Names, hosts, addresses and secrets: found in whatever form they stand, replaced alike, and nothing else touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelock.bundle.scrub import Known, Scrubber, known_here, words_of


def scrubbed(text: str, *, learn: str = "", known: Known | None = None) -> str:
    scrubber = Scrubber(known or Known())
    scrubber.learn(learn)
    scrubber.learn(text)
    return scrubber.scrub(text, "file")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("open /home/jdoe/data/x.bin", "jdoe"),
        ("/Users/jdoe/Library", "jdoe"),
        (r"C:\Users\jdoe\data", "jdoe"),
        (json.dumps({"a": json.dumps({"path": r"C:\Users\jdoe\data"})}), "jdoe"),
        ("file:///export/home/jdoe/", "jdoe"),
        ("ask jane.doe+x@uni-bonn.de today", "jane.doe"),
        ("<jane@mail.example.co.uk>", "jane@"),
        ("https://jane:pa55word@pkg.example.com/simple", "pa55word"),
        ("git+https://oauth2token12@github.com/a/b", "oauth2token12"),
        ("https://x.example/?a=1&api_key=0123456789abcdef&b=2", "0123456789abcdef"),
        ("https://s3/x?X-Amz-Signature=deadbeef01&X-Amz-Credential=AKIDX%2F2026", "deadbeef01"),
        ("https://conda.example/t/jd-0123456789ab/main/linux-64/x.conda", "jd-0123456789ab"),
        ("export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz", "hf_abc"),
        ('{"WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567"}', "0123456789abcdef"),
        ("AWS_SECRET_ACCESS_KEY='wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'", "wJalrXUt"),
        ("token ghp_abcdefghijklmnopqrstuvwxyz0123456789 used", "ghp_"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("ssh to node17.cluster.internal now", "node17"),
        ("http://10.1.2.3:3128/", "10.1.2.3"),
    ],
)
def test_what_names_somebody_goes(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in scrubbed(text)


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-curand-cu12==10.3.2.106",
        "y = W@self.weight + W@x.T",
        "@torch.no_grad()\ndef f(): pass",
        'PAD_TOKEN = "<pad>"\nSEP_TOKEN: 102\nnum_tokens=123456789',
        "PAD_TOKEN = settings.padding_1",
        "git@github.com:owner/project.git",
        "/home/root/x and /home/ubuntu/y",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, float)",
        "https://example.org/a?page=2&sort=name",
        "sha256:6e9817dbdf5ea76789babd46e457eac5bf14ff566cf85f8addbfdff2d56601ce",
        '{"host": "localhost"}',
        '{"host": "gpu"}',
        "api-ms-win-core.local_time",
    ],
)
def test_what_names_nobody_stays(text: str) -> None:
    assert scrubbed(text) == text


def test_a_name_that_one_file_tells_is_found_in_another() -> None:
    text = "job of jdoe on fast-17, fast-17.site.example; job_jdoe_1; jdoexyz"
    done = scrubbed(text, learn='/home/jdoe/x {"host": "fast-17.site.example"}')
    assert done == "job of user-1 on host-1, host-1; job_user-1_1; jdoexyz"


def test_equal_names_get_equal_replacements_and_others_others() -> None:
    assert scrubbed("/home/anna /home/bert /Users/anna") == "/home/user-1 /home/user-2 /Users/user-1"


def test_scrubbing_what_is_scrubbed_changes_nothing() -> None:
    text = 'jane@uni.de /home/jdoe https://a:secretpw1@b.example {"host": "h17"} HF_TOKEN=hf_abcdefghijklmnopqrstu'
    once = scrubbed(text)
    assert scrubbed(once) == once


def test_a_user_with_the_name_of_a_package_or_key_does_not_take_them_along() -> None:
    known = Known(
        users=("numpy", "step"), words=words_of([{"step_us": 1, "packages": [{"name": "numpy", "version": 1}]}])
    )
    text = '{"step_us": 3, "name": "numpy"} /home/numpy/x'
    assert scrubbed(text, known=known) == '{"step_us": 3, "name": "numpy"} /home/user-1/x'


def test_values_of_secret_variables_of_this_machine_and_its_folders_go_wherever_they_stand() -> None:
    variables = {"MY_API_KEY": "correct-horse-battery", "HOME": "/srv/people/kim", "LANG": "de_DE.UTF-8"}
    known = known_here({}, variables)
    assert scrubbed("x correct-horse-battery kim", known=known) == "x secret-1 user-1"
    folders = Known(folders={"/data/proj": "/study"})
    assert scrubbed("/data/proj/a /data/proj-2/a /data/projx", known=folders) == "/study/a /data/proj-2/a /data/projx"


def test_secrets_are_masked_where_they_are_listed() -> None:
    scrubber = Scrubber(Known())
    scrubber.scrub("HF_TOKEN=hf_abcdefghijklmnopqrstu", "log.txt")
    (row,) = scrubber.found
    assert (row.shown, row.by, row.count, row.files) == ("hf_… (24 characters)", "secret-1", 1, ("log.txt",))
    assert "hf_abc" not in json.dumps(scrubber.to_json())


NAMES = st.from_regex(r"[a-z]{4}[a-z0-9]{0,8}", fullmatch=True).filter(lambda n: Scrubber(Known(users=(n,)))._users)


@given(name=NAMES, rest=st.text(st.characters(codec="utf-8", exclude_characters='/\\"'), max_size=30))
def test_json_stays_json_of_the_same_shape(name: str, rest: str) -> None:
    value = {"path": f"/home/{name}/{rest}", "list": [name, 1.5, None], "host": name}
    done = json.loads(scrubbed(json.dumps(value)))
    assert set(done) == set(value)
    assert done["path"].startswith("/home/user-1/")
    assert done["list"][1:] == [1.5, None]
    assert name not in (done["path"].split("/")[2], done["list"][0], done["host"])
