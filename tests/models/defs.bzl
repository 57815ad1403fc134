"""Bundles that hold a tiny model, generated while building."""

def tiny_bundle(name, arguments = []):
    """Declares a bundle directory, NAME_bundle/, with one model, text/NAME.gguf.

    Args:
      name: name of the target. Tests name it in `data` and find the directory with
        tests.support.models.bundle(NAME).
      arguments: options of make_tiny_gguf.py.
    """
    native.genrule(
        name = name,
        outs = ["%s_bundle/text/%s.gguf" % (name, name)],
        cmd = "$(execpath :make_tiny_gguf) $@ " + " ".join(["'%s'" % argument for argument in arguments]),
        tools = [":make_tiny_gguf"],
    )

def tiny_mtp_bundle(name, arguments = []):
    """Declares a bundle directory, NAME_bundle/, with text/NAME.gguf and mtp/drafter-NAME.gguf.

    Args:
      name: name of the target, as in tiny_bundle.
      arguments: options of make_tiny_gemma4_mtp.py.
    """
    target = "%s_bundle/text/%s.gguf" % (name, name)
    drafter = "%s_bundle/mtp/drafter-%s.gguf" % (name, name)
    native.genrule(
        name = name,
        outs = [target, drafter],
        cmd = "$(execpath :make_tiny_gemma4_mtp) $(execpath %s) $(execpath %s) " % (target, drafter) +
              " ".join(["'%s'" % argument for argument in arguments]),
        tools = [":make_tiny_gemma4_mtp"],
    )

def tiny_mlx_bundle(name, weights = ["model.safetensors"]):
    """Declares a bundle directory, tiny_mlx_NAME_bundle/, whose text/ is a model directory of MLX.

    Args:
      name: a model of make_tiny_mlx.py; the target is tiny_mlx_NAME.
      weights: its files besides config.json, tokenizer.json and tokenizer_config.json.
    """
    target = "tiny_mlx_" + name
    native.genrule(
        name = target,
        outs = [
            "%s_bundle/text/%s" % (target, file)
            for file in ["config.json", "tokenizer.json", "tokenizer_config.json"] + weights
        ],
        cmd = "$(execpath :make_tiny_mlx) $(RULEDIR)/%s_bundle/text %s" % (target, name),
        tools = [":make_tiny_mlx"],
    )
