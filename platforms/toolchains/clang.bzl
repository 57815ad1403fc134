"""What clang is told whatever it compiles for; each toolchain below adds what is its own.

    load("//platforms/toolchains:clang.bzl", "COMPILE", "LINK", "clang_features", "flags")

    features = clang_features(
        compile = [flags(COMPILE, ["--target=…"] + REPRODUCIBLE)],
        link = [flags(LINK, ["--target=…"])],
    )
"""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:cc_toolchain_config_lib.bzl", "feature", "flag_group", "flag_set", "with_feature_set")

COMPILE_CXX = [
    ACTION_NAMES.cpp_compile,
    ACTION_NAMES.cpp_header_parsing,
    ACTION_NAMES.cpp_module_codegen,
    ACTION_NAMES.cpp_module_compile,
    ACTION_NAMES.linkstamp_compile,
]

COMPILE = COMPILE_CXX + [
    ACTION_NAMES.assemble,
    ACTION_NAMES.c_compile,
    ACTION_NAMES.preprocess_assemble,
]

LINK_LIBRARY = [
    ACTION_NAMES.cpp_link_dynamic_library,
    ACTION_NAMES.cpp_link_nodeps_dynamic_library,
]

LINK_EXECUTABLE = [ACTION_NAMES.cpp_link_executable]

LINK = LINK_LIBRARY + LINK_EXECUTABLE

# No path, date or time of this build in what it makes.
REPRODUCIBLE = [
    "-ffile-compilation-dir=.",
    "-Wno-builtin-macro-redefined",
    '-D__DATE__="redacted"',
    '-D__TIMESTAMP__="redacted"',
    '-D__TIME__="redacted"',
]

def flags(actions, flags, mode = None):
    """A flag_set.

    Args:
      actions: COMPILE, LINK or a part of them.
      flags: the flags.
      mode: the compilation mode that has them; None: every one.

    Returns:
      A flag_set.
    """
    return flag_set(
        actions = actions,
        flag_groups = [flag_group(flags = flags)],
        with_features = [with_feature_set(features = [mode])] if mode else [],
    )

def clang_features(compile, link, strip = True):
    """The features that our toolchains share.

    Args:
      compile: flag_sets of every compilation.
      link: flag_sets of every link.
      strip: whether what is linked for release loses its symbol table.

    Returns:
      A list of features.
    """
    features = [
        feature(name = mode)
        for mode in ("dbg", "fastbuild", "opt")
    ] + [
        feature(
            name = name,
            enabled = True,
        )
        for name in ("supports_dynamic_linker", "supports_pic")
    ] + [
        feature(
            name = "default_compile_flags",
            enabled = True,
            flag_sets = compile + [
                flags(
                    COMPILE,
                    [
                        "-O2",
                        "-DNDEBUG",
                        # What nobody calls is not linked.
                        "-ffunction-sections",
                        "-fdata-sections",
                    ],
                    mode = "opt",
                ),
                flags(COMPILE, ["-g"], mode = "dbg"),
            ],
        ),
        # Headers of other repositories give no warnings. Before the system's own, as anywhere.
        feature(
            name = "external_include_paths",
            flag_sets = [flag_set(
                actions = COMPILE,
                flag_groups = [flag_group(
                    expand_if_available = "external_include_paths",
                    flags = ["-isystem%{external_include_paths}"],
                    iterate_over = "external_include_paths",
                )],
            )],
        ),
        feature(
            name = "default_link_flags",
            enabled = True,
            flag_sets = link,
        ),
    ]
    if strip:
        # With --features=-stripped there is a symbol table, for profilers.
        features.append(feature(
            name = "stripped",
            enabled = True,
            flag_sets = [flags(LINK, ["-Wl,-s"], mode = "opt")],
        ))
    return features
