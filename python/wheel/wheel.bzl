"""A wheel with compiled parts.

The public registry's py_wheel does not load in the private root. This runs hatchling, from PyPI, on the
package's files.
"""

def _wheel_impl(ctx):
    # Its name has the version and the tags, which the build finds out: so a folder, with the wheel in it.
    out = ctx.actions.declare_directory(ctx.label.name)
    arguments = ctx.actions.args()
    arguments.add("--out", out.path)
    inputs = []
    for target, path in ctx.attr.files.items():
        files = target[DefaultInfo].files.to_list()
        if path.endswith("/"):
            for file in files:
                # Below the package that the file is of: elizainference/cli/_main.py.
                within = file.short_path.removeprefix(target.label.package + "/")
                arguments.add("%s=%s%s" % (file.path, path, within))
        else:
            (file,) = files
            arguments.add("%s=%s" % (file.path, path))
        inputs += files
    ctx.actions.run(
        arguments = [arguments],
        executable = ctx.executable._build,
        inputs = inputs,
        mnemonic = "PythonWheel",
        outputs = [out],
        progress_message = "Building the wheel %{label}",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles(files = [out]))]

wheel = rule(
    implementation = _wheel_impl,
    attrs = {
        "files": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "{target: path in the project}: of one file, its path; ending in /, the folder for the target's files.",
            mandatory = True,
        ),
        "_build": attr.label(
            cfg = "exec",
            default = "//python/wheel:build_wheel",
            executable = True,
        ),
    },
    doc = "A folder with the wheel of a project's files, pyproject.toml among them.",
)
