"""One library, several configurations, one invocation.

    variant(
        name = "elizainference_gates_on",
        actual = ":elizainference",
        flags = {
            "//platforms:enable_litert": True,
            "//platforms:enable_mlx": True,
        },
    )

builds `actual` with these flags and, where `platform` is given, for that platform, whatever the
command line says. Its files keep their names (an SONAME stays true, a client's `-lelizainference`
works) in a folder called after the variant: `bazel-bin/elizainference_gates_on/libelizainference.so`.
The libraries that `actual` is linked with lie beside it, where its run path looks for them: the folder
can be copied as it is.
"""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_cc//cc/common:cc_shared_library_info.bzl", "CcSharedLibraryInfo")

_PLATFORMS = "//command_line_option:platforms"
_MACOS_MINIMUM_OS = "//command_line_option:macos_minimum_os"

# {a platform of //platforms: the flags that belong to it}, as .bazelrc has them for `--config=NAME`.
VARIANTS = {
    "android_npu": {"//platforms:enable_litert": True},
    # The emulator: what every Android on x86-64 has is SSE4.2, which is what clang takes for Android's baseline.
    "android_x86_64": {"//platforms:cpu_level": "baseline"},
    "linux_arm64": {},
    "linux_cuda": {},
    "linux_x86_64": {},
    "macos_metal": {
        "//platforms:enable_mlx": True,
        # The oldest that MLX's own build runs on.
        _MACOS_MINIMUM_OS: "14.0",
    },
}

_FLAGS = [
    "//platforms:cpu_level",
    "//platforms:enable_litert",
    "//platforms:enable_mlx",
    "//platforms:ffi_abi",
    _MACOS_MINIMUM_OS,
]

def _variant_transition_impl(settings, attr):
    result = dict(settings)
    if attr.platform:
        result[_PLATFORMS] = str(attr.platform)
    for flag, value in attr.flags.items():
        if flag not in _FLAGS:
            fail("variant %s: no flag %s; there are %s" % (attr.name, flag, ", ".join(_FLAGS)))

        # A rule's attribute holds strings; a bool_flag takes a bool.
        result[flag] = value == "True" if type(settings[flag]) == "bool" else value
    return result

_variant_transition = transition(
    implementation = _variant_transition_impl,
    inputs = [_PLATFORMS] + _FLAGS,
    outputs = [_PLATFORMS] + _FLAGS,
)

# What a loader looks for beside a library: on Linux, on macOS.
def _lies_beside(file):
    return file.extension in ("so", "dylib") or ".so." in file.basename

def _variant_impl(ctx):
    # An attribute with a transition is a list, even where the transition is one-to-one.
    actual = ctx.attr.actual[0]

    def link(file):
        result = ctx.actions.declare_file(ctx.label.name + "/" + file.basename)
        ctx.actions.symlink(output = result, target_file = file)
        return result

    # Without the files themselves, and Bazel's links to them: among the runfiles they would lie where those of the
    # plain target lie.
    originals = actual[DefaultInfo].files.to_list()
    names = [file.basename for file in originals]
    others = [file for file in actual[DefaultInfo].default_runfiles.files.to_list() if file.basename not in names]
    files = [link(file) for file in originals]
    beside = [link(file) for file in ctx.files.beside + [file for file in others if _lies_beside(file)]]
    rest = [file for file in others if not _lies_beside(file)]
    return [
        DefaultInfo(files = depset(files), runfiles = ctx.runfiles(files = files + beside + rest)),
        # Built with the variant, though not among its files: $(rlocationpath) wants one file.
        OutputGroupInfo(_hidden_top_level_INTERNAL_ = depset(beside)),
    ] + [
        actual[provider]
        for provider in (CcInfo, CcSharedLibraryInfo)
        if provider in actual
    ]

_variant = rule(
    implementation = _variant_impl,
    attrs = {
        "actual": attr.label(
            cfg = _variant_transition,
            doc = "The target to build.",
            mandatory = True,
        ),
        "beside": attr.label_list(
            allow_files = True,
            cfg = _variant_transition,
            doc = "Files that lie beside those of `actual`, in its configuration, besides the libraries that it is linked with.",
        ),
        "flags": attr.string_dict(
            doc = "Flags of //platforms, by label, and the values they take.",
        ),
        "platform": attr.label(
            doc = "The platform to build for; unset, the one of the command line.",
        ),
    },
    doc = "Builds a target in a configuration of its own; see the file's comment.",
)

def variant(name, actual, platform = None, flags = {}, beside = [], **kwargs):
    """Declares `actual` built for `platform` with `flags`.

    Args:
      name: name of the target, and of the folder its files are in.
      actual: the target to build, usually a cc_shared_library.
      platform: label of a platform; None keeps the one of the command line.
      flags: {label of a flag in //platforms: its value}, e.g.
        {"//platforms:enable_mlx": True, "//platforms:ffi_abi": "12"}.
      beside: files that `actual` looks for beside itself, but for libraries it is linked with; a select() on flags of
        the variant goes into a filegroup.
      **kwargs: attributes common to all rules (tags, visibility, testonly, ...).
    """
    _variant(
        name = name,
        actual = actual,
        beside = beside,
        flags = {flag: str(value) for flag, value in flags.items()},
        platform = platform,
        **kwargs
    )
