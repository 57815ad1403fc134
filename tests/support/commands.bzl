"""Lists what a build would compile and link, without doing it.

    commands(
        name = "commands",
        targets = ["//:elizainference_android_npu"],
        extra_toolchains = ["//tests/platforms:android_arm64"],
    )

writes NAME.jsonl, for each command a line with `mnemonic` (CppArchive, CppCompile, CppLink), `arguments` and `outputs`.
Nothing of the toolchain has to be there: `extra_toolchains` are taken before those that MODULE.bazel registers.
"""

_CommandsInfo = provider(
    doc = "The commands that a target and all it depends on ask for.",
    fields = {"lines": "A depset of commands, as JSON."},
)

_MNEMONICS = ["CppArchive", "CppCompile", "CppLink"]

def _targets(value):
    if type(value) == "Target":
        return [value]
    if type(value) == "list":
        return [each for each in value if type(each) == "Target"]
    if type(value) == "dict":
        return [each for each in value.keys() if type(each) == "Target"]
    return []

def _commands_aspect_impl(target, ctx):
    own = [
        json.encode({
            "arguments": action.argv,
            "mnemonic": action.mnemonic,
            "outputs": [file.path for file in action.outputs.to_list()],
        })
        for action in target.actions
        if action.mnemonic in _MNEMONICS
    ]
    below = [
        each[_CommandsInfo].lines
        for name in dir(ctx.rule.attr)
        for each in _targets(getattr(ctx.rule.attr, name))
        if _CommandsInfo in each
    ]
    return [_CommandsInfo(lines = depset(own, transitive = below))]

_commands_aspect = aspect(
    implementation = _commands_aspect_impl,
    attr_aspects = ["*"],
    doc = "Collects the commands of everything below a target.",
)

_EXTRA_TOOLCHAINS = "//command_line_option:extra_toolchains"

def _toolchains_impl(settings, attr):
    return {_EXTRA_TOOLCHAINS: [str(Label(label)) for label in attr.extra_toolchains] + settings[_EXTRA_TOOLCHAINS]}

_toolchains_transition = transition(
    implementation = _toolchains_impl,
    inputs = [_EXTRA_TOOLCHAINS],
    outputs = [_EXTRA_TOOLCHAINS],
)

def _commands_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".jsonl")
    arguments = ctx.actions.args()
    arguments.add_all(depset(transitive = [target[_CommandsInfo].lines for target in ctx.attr.targets]))
    arguments.set_param_file_format("multiline")
    ctx.actions.write(out, arguments)
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

commands = rule(
    implementation = _commands_impl,
    attrs = {
        "targets": attr.label_list(
            aspects = [_commands_aspect],
            cfg = _toolchains_transition,
            doc = "What would be built.",
        ),
        # Labels, and no dependencies: a toolchain() has nothing to give.
        "extra_toolchains": attr.string_list(doc = "toolchain targets to take before others."),
    },
    doc = "NAME.jsonl: the commands that building `targets` runs.",
)
