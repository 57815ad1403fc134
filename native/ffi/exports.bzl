"""The lists of exported symbols that linkers take, made from lists like exports.txt."""

# Names of the symbols that ABI version `abi` has, in the order of the file.
_NAMES = "awk -v abi=%s '$$1 == \"own\" || ($$1 ~ /^[0-9]+$$/ && $$1 + 0 <= abi + 0) { print $$2 }' $(SRCS)"

def _genrule(name, srcs, out, script, testonly):
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [out],
        cmd = select({
            "//platforms:ffi_abi_12": _NAMES % 12 + script,
            "//conditions:default": _NAMES % 15 + script,
        }),
        testonly = testonly,
    )

def export_lists(name, srcs, testonly = False):
    """Defines NAME.lds, a version script for ELF linkers, and NAME.symbols, a list for Apple's.

    Args:
      name: name of the two files.
      srcs: lists of symbols, in the form of //native/ffi:exports.txt.
      testonly: whether only tests may use them.
    """
    _genrule(
        name = name + "_version_script",
        srcs = srcs,
        out = name + ".lds",
        script = " | awk 'BEGIN { print \"{\\n  global:\" } { print \"    \" $$0 \";\" } END { print \"  local: *;\\n};\" }' > $@",
        testonly = testonly,
    )
    _genrule(
        name = name + "_symbol_list",
        srcs = srcs,
        out = name + ".symbols",
        script = " | sed 's/^/_/' > $@",
        testonly = testonly,
    )
