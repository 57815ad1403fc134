"""What of others is in a package, and under which license.

    component(
        name = "component",
        component_name = "llama.cpp",
        license = "MIT",
        pin = "llama_cpp",
        texts = ["@llama_cpp//:LICENSE"],
        version = "0c1e57098",
    )

Packages (//dist) make their notices and their SBOM of these. Which file a component comes from, and its
sha256, is said once, in extensions.bzl: `pin` is the name of its repository there.
"""

ComponentInfo = provider(
    doc = "A component of somebody else's.",
    fields = {
        "data": "A struct of name, version, license, pin, role and texts, the paths of the files with the license.",
        "texts": "The files with the license.",
    },
)

def _component_impl(ctx):
    return [ComponentInfo(
        data = struct(
            name = ctx.attr.component_name,
            license = ctx.attr.license,
            pin = ctx.attr.pin,
            role = ctx.attr.role,
            texts = [file.path for file in ctx.files.texts],
            version = ctx.attr.version,
        ),
        texts = ctx.files.texts,
    )]

component = rule(
    implementation = _component_impl,
    attrs = {
        "component_name": attr.string(
            doc = "The name it is known by.",
            mandatory = True,
        ),
        "license": attr.string(
            doc = "An SPDX license expression.",
            mandatory = True,
        ),
        "pin": attr.string(
            doc = "The repository in extensions.bzl that it comes from; empty where it is this machine's own.",
            mandatory = True,
        ),
        "role": attr.string(
            default = "linked",
            doc = "What it is to the package: linked into the library, included as a file of its own, loaded from elsewhere at run time, or used for the build.",
            values = ["build", "included", "linked", "loaded"],
        ),
        "texts": attr.label_list(
            allow_files = True,
            doc = "The files with its license.",
            mandatory = True,
        ),
        "version": attr.string(
            doc = "Its own version.",
            mandatory = True,
        ),
    },
    doc = "Describes a component; see the file's comment.",
)
