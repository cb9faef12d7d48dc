"""The sizes of public models: consistent, and as many weights as in the published files."""

import pytest

from attnbook.configurations import MODELS, cache_bytes_per_position, weights

BY_NAME = {model.name: model for model in MODELS}

# Numbers in the published safetensors files: `safetensors.total` of the Hugging Face API for the
# two Llama 2; half of `metadata.total_size` in model.safetensors.index.json, two bytes a number,
# for Mistral 7B and Llama 3 8B; the count of keras-hub's gemma_presets.py for Gemma 2B; the count
# of both files of Falcon 7B, which hold the tied embeddings twice (vllm-project/vllm, pull request
# 3590).
PUBLISHED = {
    "Llama 2 7B": 6_738_417_664,
    "Llama 2 70B": 68_976_653_312,
    "Falcon 7B": 7_217_189_760,
    "Mistral 7B": 14_483_464_192 // 2,
    "Gemma 2B": 2_506_172_416,
    "Llama 3 8B": 16_060_522_496 // 2,
}


def beside_the_matrices(model):
    """Numbers in the file of a model that `weights` leaves out or counts once."""
    if model.name == "Falcon 7B":  # one LayerNorm of scale and shift a layer, and a last one
        return 2 * (model.layers + 1) * model.d + model.vocabulary * model.d
    norms = (2 * model.layers + 1) * model.d
    # Frequencies of the rotary positions, one for each pair of features in each layer.
    return norms + (model.layers * model.d_h // 2 if model.name.startswith("Llama 2") else 0)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_a_configuration_is_consistent(model):
    assert model.H_q % model.H_kv == 0
    assert model.H_q * model.d_h == model.d
    assert model.source.startswith("https://huggingface.co/")
    assert 2019 <= model.year <= 2030


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_the_weights_are_those_of_the_published_files(model):
    assert weights(model) + beside_the_matrices(model) == PUBLISHED[model.name]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_norms_are_fewer_than_one_number_in_ten_thousand(model):
    norms = (2 * model.layers + 2) * model.d
    assert norms < weights(model) / 10_000


def test_the_cache_of_a_position():
    llama = BY_NAME["Llama 3 8B"]
    assert cache_bytes_per_position(llama) == 2 * 32 * 8 * 128 * 2 == 128 * 1024
    assert cache_bytes_per_position(llama, bytes_per_number=1) == 64 * 1024
    assert cache_bytes_per_position(llama._replace(H_kv=32)) == 4 * 128 * 1024
    assert cache_bytes_per_position(BY_NAME["Falcon 7B"]) == 8 * 1024


@pytest.mark.parametrize("function", [weights, cache_bytes_per_position])
def test_what_is_no_configuration_is_told(function):
    for model in (None, "Llama 2 7B", MODELS):
        with pytest.raises(TypeError, match="model must be a Configuration, for example one of"):
            function(model)
    for name in ("layers", "d_ff", "vocabulary", "ffn_matrices"):
        for size in (float("nan"), None, "x", 0):
            with pytest.raises(ValueError, match=f"{name} must be one integer, 1 or more"):
                function(MODELS[0]._replace(**{name: size}))
