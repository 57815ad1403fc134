"""Java classes, compiled by the JDK of this machine (//platforms/toolchains/java:jdk.bzl)."""

load("@jdk//:jdk.bzl", "JAVA_HOME", "NEEDS_JDK")

def _java_jar_impl(ctx):
    arguments = ctx.actions.args()
    arguments.add(JAVA_HOME, format = "--javac=%s/bin/javac")
    arguments.add(ctx.outputs.out, format = "--out=%s")
    arguments.add_all(ctx.files.srcs)
    ctx.actions.run(
        arguments = [arguments],
        executable = ctx.executable._tool,
        # `release` has the JDK's version in it.
        inputs = ctx.files.srcs + [ctx.file._release],
        mnemonic = "JavaJar",
        outputs = [ctx.outputs.out],
        progress_message = "Compiling %{output}",
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]), runfiles = ctx.runfiles([ctx.outputs.out]))]

_java_jar = rule(
    implementation = _java_jar_impl,
    attrs = {
        "out": attr.output(mandatory = True),
        "srcs": attr.label_list(
            allow_files = [".java"],
            mandatory = True,
        ),
        "_release": attr.label(
            allow_single_file = True,
            default = "@jdk//:release",
        ),
        "_tool": attr.label(
            cfg = "exec",
            default = "//dist/android:jar",
            executable = True,
        ),
    },
)

def java_jar(name, out, srcs, **kwargs):
    """Declares a jar of classes for Java 8.

    Args:
      name: name of the target.
      out: the file.
      srcs: the sources.
      **kwargs: attributes common to all rules.
    """
    _java_jar(
        name = name,
        out = out,
        srcs = srcs,
        target_compatible_with = NEEDS_JDK,
        **kwargs
    )
