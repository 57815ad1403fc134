"""A shared library in the folder of the package that uses it."""

def _library_here_impl(ctx):
    # Under its own name, which ends in .so or .dylib.
    link = ctx.actions.declare_file(ctx.file.library.basename)
    ctx.actions.symlink(output = link, target_file = ctx.file.library)
    files = depset([link])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

library_here = rule(
    implementation = _library_here_impl,
    attrs = {
        "library": attr.label(
            allow_single_file = [".so", ".dylib"],
            doc = "The shared library.",
            mandatory = True,
        ),
    },
    doc = "Links the file of a shared library into this package's folder.",
)
