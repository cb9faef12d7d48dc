"""The sizes of public models: consistent, and as many weights as their publishers count."""

import pytest

from attnbook.configurations import MODELS, cache_bytes_per_position, weights

BY_NAME = {model.name: model for model in MODELS}

# Numbers of weights of the published files. Vectors of normalisation are in them: of Llama, Mistral
# and Gemma 2 * layers + 1 with d numbers, of Falcon layers + 1 with 2 d.
PUBLISHED = {
    "Llama 2 7B": 6_738_415_616,
    "Llama 2 70B": 68_976_648_192,
    "Falcon 7B": 6_921_720_704,
    "Mistral 7B": 7_241_732_096,
    "Gemma 2B": 2_506_172_416,
    "Llama 3 8B": 8_030_261_248,
}


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_a_configuration_is_consistent(model):
    assert model.H_q % model.H_kv == 0
    assert model.H_q * model.d_h == model.d
    assert model.source.startswith("https://huggingface.co/")
    assert 2019 <= model.year <= 2030


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_the_weights_are_those_of_the_published_files_but_for_the_norms(model):
    vectors = 2 * model.layers + 1
    if model.name == "Falcon 7B":
        vectors = 2 * (model.layers + 1)
    assert PUBLISHED[model.name] - weights(model) == vectors * model.d


def test_the_cache_of_a_position():
    llama = BY_NAME["Llama 3 8B"]
    assert cache_bytes_per_position(llama) == 2 * 32 * 8 * 128 * 2 == 128 * 1024
    assert cache_bytes_per_position(llama, bytes_per_number=1) == 64 * 1024
    assert cache_bytes_per_position(llama._replace(H_kv=32)) == 4 * 128 * 1024
    assert cache_bytes_per_position(BY_NAME["Falcon 7B"]) == 8 * 1024
