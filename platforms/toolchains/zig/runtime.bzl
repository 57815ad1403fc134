"""The C++ runtime and glibc's symbols, built once for each target."""

load("//platforms:reset_flags.bzl", "FLAG_DEFAULTS")

# One runtime, whatever is linked with it.
_DEFAULTS = FLAG_DEFAULTS | {"//platforms:cpu_level": "default"}

_default_flags = transition(
    implementation = lambda settings, attr: _DEFAULTS,
    inputs = [],
    outputs = _DEFAULTS.keys(),
)

def _zig_runtime_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    arguments = ctx.actions.args()
    arguments.add_all([ctx.file._zig, ctx.attr.target, ctx.file._program, ctx.file._unload])
    arguments.add_all([out], expand_directories = False)
    ctx.actions.run(
        arguments = [arguments],
        executable = ctx.executable._build,
        inputs = depset([ctx.file._zig, ctx.file._program, ctx.file._unload], transitive = [ctx.attr._sources[DefaultInfo].files]),
        mnemonic = "ZigRuntime",
        outputs = [out],
        progress_message = "Building libc++ for " + ctx.attr.target,
        # Bazel's own PATH, for sh, cp and ln.
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([out]))]

zig_runtime = rule(
    implementation = _zig_runtime_impl,
    attrs = {
        "target": attr.string(
            doc = "As zig names it, with the version of glibc: x86_64-linux-gnu.2.28.",
            mandatory = True,
        ),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
        "_build": attr.label(
            allow_single_file = True,
            cfg = "exec",
            default = ":build-runtime",
            executable = True,
        ),
        "_program": attr.label(
            allow_single_file = True,
            default = ":warm-up.cc",
        ),
        "_sources": attr.label(default = "@ziglang//:runtime_sources"),
        "_unload": attr.label(
            allow_single_file = True,
            default = ":unload.c",
        ),
        "_zig": attr.label(
            allow_single_file = True,
            default = "@ziglang//:ziglang/zig",
        ),
    },
    cfg = _default_flags,
    doc = "A folder of libraries to link with; build-runtime says what is in it.",
)
