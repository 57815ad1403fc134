"""Packages: archives with notices and a bill of materials, by Python's standard library.

    notices(
        name = "notices",
        components = COMPONENTS,
    )

    sbom(
        name = "sbom",
        components = COMPONENTS,
        files = {"//:elizainference_linux_x86_64": "lib/libelizainference.so"},
        package = "libelizainference-linux-x86_64",
    )

    archive(
        name = "sdk",
        out = "sdk.tar.gz",
        files = {
            ":notices": "share/doc/THIRD_PARTY_NOTICES.txt",
            "//:elizainference_linux_x86_64": "lib/libelizainference.so",
        },
    )

COMPONENTS are component targets (//third_party:component.bzl). The same inputs give the same bytes.
"""

load("//dist:version.bzl", "VERSION")
load("//third_party:component.bzl", "ComponentInfo")

def _only_file(target):
    files = target[DefaultInfo].files.to_list()
    if len(files) != 1:
        fail("%s makes %d files, and one is what a path in a package stands for" % (target.label, len(files)))
    return files[0]

def _file_arguments(arguments, files, format):
    for target, paths in files.items():
        for path in paths.split(" "):
            arguments.add(_only_file(target), format = format % path)

def _component_arguments(arguments, components):
    for component in components:
        arguments.add("--component=" + json.encode(component[ComponentInfo].data))

def _run(ctx, tool, arguments, inputs, out, mnemonic):
    arguments.use_param_file("@%s", use_always = True)
    arguments.set_param_file_format("multiline")
    ctx.actions.run(
        arguments = [arguments],
        executable = tool,
        inputs = inputs,
        mnemonic = mnemonic,
        outputs = [out],
        progress_message = "Writing %{output}",
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

# -- archive --------------------------------------------------------------------------------------

def _archive_impl(ctx):
    arguments = ctx.actions.args()
    arguments.add(ctx.outputs.out, format = "--out=%s")
    arguments.add(ctx.attr.prefix, format = "--prefix=%s")
    _file_arguments(arguments, ctx.attr.files, "%s=%%s")
    return _run(ctx, ctx.executable._tool, arguments, ctx.files.files, ctx.outputs.out, "Archive")

archive = rule(
    implementation = _archive_impl,
    attrs = {
        "files": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "{a file, or a target of one file: its path in the archive, or several with spaces between}.",
            mandatory = True,
        ),
        "out": attr.output(
            doc = "The file's name; .tar.gz makes a tar file, .zip, .aar and .whl a zip file.",
            mandatory = True,
        ),
        "prefix": attr.string(doc = "A folder that everything lies in."),
        "_tool": attr.label(
            cfg = "exec",
            default = "//dist:archive",
            executable = True,
        ),
    },
    doc = "An archive of files.",
)

# -- notices --------------------------------------------------------------------------------------

def _notices_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".txt")
    arguments = ctx.actions.args()
    arguments.add(out, format = "--out=%s")
    _component_arguments(arguments, ctx.attr.components)
    inputs = depset(transitive = [depset(component[ComponentInfo].texts) for component in ctx.attr.components])
    return _run(ctx, ctx.executable._tool, arguments, inputs, out, "Notices")

notices = rule(
    implementation = _notices_impl,
    attrs = {
        "components": attr.label_list(
            doc = "What is in the package.",
            providers = [ComponentInfo],
        ),
        "_tool": attr.label(
            cfg = "exec",
            default = "//dist:notices_tool",
            executable = True,
        ),
    },
    doc = "NAME.txt: the licenses of `components`.",
)

# -- sbom -----------------------------------------------------------------------------------------

def _sbom_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".spdx.json")
    arguments = ctx.actions.args()
    arguments.add(out, format = "--out=%s")
    arguments.add(ctx.attr.package, format = "--name=%s")
    arguments.add(VERSION, format = "--version=%s")
    arguments.add(ctx.file._extensions, format = "--extensions=%s")
    _file_arguments(arguments, ctx.attr.files, "--file=%s=%%s")
    _component_arguments(arguments, ctx.attr.components)
    return _run(ctx, ctx.executable._tool, arguments, ctx.files.files + [ctx.file._extensions], out, "Sbom")

sbom = rule(
    implementation = _sbom_impl,
    attrs = {
        "components": attr.label_list(
            doc = "What is in the package, or built it.",
            providers = [ComponentInfo],
        ),
        "files": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "{a target of one file: its path in the package}, for the files that are compiled.",
        ),
        "package": attr.string(
            doc = "Name of the package.",
            mandatory = True,
        ),
        "_extensions": attr.label(
            allow_single_file = True,
            default = "//third_party:extensions.bzl",
        ),
        "_tool": attr.label(
            cfg = "exec",
            default = "//dist:sbom_tool",
            executable = True,
        ),
    },
    doc = "NAME.spdx.json: what is in a package, where it comes from, and the sha256 of all of it.",
)
