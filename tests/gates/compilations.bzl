"""Lists what a build would compile, without compiling it."""

_CompilationsInfo = provider(
    doc = "The compilations that a target and all it depends on ask for.",
    fields = {"objects": "A depset of the paths of object files."},
)

def _targets(value):
    if type(value) == "Target":
        return [value]
    if type(value) == "list":
        return [each for each in value if type(each) == "Target"]
    if type(value) == "dict":
        return [each for each in value.keys() if type(each) == "Target"]
    return []

def _compilations_aspect_impl(target, ctx):
    own = [
        file.path
        for action in target.actions
        if action.mnemonic == "CppCompile"
        for file in action.outputs.to_list()
        if file.extension == "o"
    ]
    below = [
        each[_CompilationsInfo].objects
        for name in dir(ctx.rule.attr)
        for each in _targets(getattr(ctx.rule.attr, name))
        if _CompilationsInfo in each
    ]
    return [_CompilationsInfo(objects = depset(own, transitive = below))]

_compilations_aspect = aspect(
    implementation = _compilations_aspect_impl,
    attr_aspects = ["*"],
    doc = "Collects the compilations of everything below a target.",
)

def _compilations_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".txt")
    objects = depset(transitive = [target[_CompilationsInfo].objects for target in ctx.attr.targets])
    arguments = ctx.actions.args()
    arguments.add_all(objects)
    arguments.set_param_file_format("multiline")
    ctx.actions.write(out, arguments)
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

compilations = rule(
    implementation = _compilations_impl,
    attrs = {
        "targets": attr.label_list(
            aspects = [_compilations_aspect],
            doc = "What would be built.",
        ),
    },
    doc = "NAME.txt: the object files that building `targets` makes, one path a line.",
)
