#!/usr/bin/env python3
"""Makes a folder shaped like an Android NDK from sources, to check builds for Android where no NDK can be had.

    ndk.py BIONIC JNI_H ZIG OUT

BIONIC is a checkout of Android's C library (the project platform/bionic), JNI_H the jni.h of Android's libnativehelper
(Debian: android-libnativehelper-dev), ZIG the unpacked PyPI wheel `ziglang`, whose lib/ has the sources of libc++;
clang, lld and LLVM's tools are those on PATH. OUT can then be ANDROID_NDK_HOME.

What is made has Android's own headers, its lists of symbols by API level as libraries to link with, and LLVM's C++
runtime, compiled for Android; it is not Google's NDK: the compiler, libc++'s version and what Google adds differ.
Nothing built with it should be shipped.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import libcxx

API = 26
# {architecture: (clang's target, folder of the kernel's headers, name in lists of symbols)}
ARCHITECTURES = {
    "aarch64": ("aarch64-linux-android", "asm-arm64", "arm64"),
    "x86_64": ("x86_64-linux-android", "asm-x86", "x86_64"),
}
TOOLS = ["llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-objdump", "llvm-readelf", "llvm-strip", "ld.lld"]
# thread_local before API level 29, where compiler-rt has it and zig's copy has not.
EMUTLS = """\
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
typedef struct { size_t size, align, index; void* value; } control;
typedef struct { size_t count; void* objects[]; } table;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static size_t objects;
static void destroy(void* made) {
  table* t = made;
  for (size_t i = 0; i < t->count; ++i) free(t->objects[i]);
  free(t);
}
__attribute__((visibility("hidden"))) void* __emutls_get_address(control* c) {
  pthread_mutex_lock(&mutex);
  if (objects == 0) pthread_key_create(&key, destroy);
  if (c->index == 0) c->index = ++objects;
  pthread_mutex_unlock(&mutex);
  table* t = pthread_getspecific(key);
  size_t count = t ? t->count : 0;
  if (count < c->index) {
    t = realloc(t, sizeof(table) + (c->index + 16) * sizeof(void*));
    memset(t->objects + count, 0, (c->index + 16 - count) * sizeof(void*));
    t->count = c->index + 16;
    pthread_setspecific(key, t);
  }
  void** object = &t->objects[c->index - 1];
  if (*object == NULL) {
    posix_memalign(object, c->align < sizeof(void*) ? sizeof(void*) : c->align, c->size);
    if (c->value) memcpy(*object, c->value, c->size); else memset(*object, 0, c->size);
  }
  return *object;
}
"""


def run(*command, **kwargs) -> None:
    subprocess.run([str(word) for word in command], check=True, **kwargs)


def exported(symbol_list: pathlib.Path, name: str) -> dict[str, tuple[list[str], list[str]]]:
    """{version: (functions, variables)} that an app built for API level `API` may use of a library."""
    versions: dict[str, tuple[list[str], list[str]]] = {}
    version = ""
    of_version: list[str] = []
    version_is_hidden = False
    for line in symbol_list.read_text().splitlines():
        code, _, comment = line.partition("#")
        code, tags = code.strip(), comment.split()
        if code.endswith("{"):
            version, of_version = code.split()[0], tags
            version_is_hidden = "PRIVATE" in code or "PLATFORM" in code or "platform-only" in tags
        match = re.fullmatch(r"(\w+);", code)
        if not match or version_is_hidden or {"platform-only", "apex", "llndk", "systemapi"} & set(tags):
            continue
        # What a version says holds for its symbols, unless they say otherwise.
        levels = dict(tag.split("=") for tag in of_version + tags if tag.startswith("introduced"))
        level = levels.get(f"introduced-{name}", levels.get("introduced", "1"))
        architectures = {tag for tag in tags if tag in ("arm", "arm64", "riscv64", "x86", "x86_64")}
        if architectures and name not in architectures:
            continue
        if not level.isdigit() or int(level) > API:
            continue
        functions, variables = versions.setdefault(version, ([], []))
        (variables if "var" in tags else functions).append(match[1])
    return versions


def make_library(symbol_list: pathlib.Path, soname: str, triple: str, name: str, folder: pathlib.Path) -> None:
    """A library with nothing but symbols and their versions, to link with."""
    source, script = "", ""
    for version, (functions, variables) in exported(symbol_list, name).items():
        source += "".join(f"void {symbol}(void) {{}}\n" for symbol in functions)
        source += "".join(f"char {symbol}[64];\n" for symbol in variables)
        script += f"{version} {{ global: {' '.join(f'{symbol};' for symbol in functions + variables)} }};\n"
    (folder / "versions").write_text(script)
    run(
        "clang", f"--target={triple}{API}", "-x", "c", "-", "-w", "-O0", "-fno-builtin", "-fPIC", "-nostdlib",
        "-shared", "-fuse-ld=lld", f"-Wl,-soname,{soname}", f"-Wl,--version-script={folder / 'versions'}",
        "-o", folder / soname, input=source, text=True,
    )  # fmt: skip
    (folder / "versions").unlink()


def make_headers(bionic: pathlib.Path, zig: pathlib.Path, include: pathlib.Path) -> None:
    shutil.copytree(bionic / "libc/include", include, dirs_exist_ok=True)
    kernel = bionic / "libc/kernel"
    for folder in ("linux", "asm-generic", "misc", "mtd"):
        for tree in (kernel / "uapi" / folder, kernel / "android/uapi" / folder):
            if tree.is_dir():
                shutil.copytree(tree, include / folder, dirs_exist_ok=True)
    for triple, asm, _ in ARCHITECTURES.values():
        shutil.copytree(kernel / "uapi" / asm / "asm", include / triple / "asm", dirs_exist_ok=True)
    libcxx.make_headers(zig, include, namespace="__ndk1")


def make_cxx_runtime(zig: pathlib.Path, sysroot: pathlib.Path, triple: str, work: pathlib.Path) -> None:
    """libc++_static.a and libc++abi.a, and the unwinder in the place where clang looks for it."""
    library = zig / "lib"
    common = [
        "clang++", f"--target={triple}{API}", f"--sysroot={sysroot}", "-O2", "-fPIC", "-w", "-c", "-nostdinc++",
        "-isystem", sysroot / "usr/include/c++/v1", "-fvisibility=hidden", "-D_LIBCPP_BUILDING_LIBRARY",
        "-D_LIBCXXABI_BUILDING_LIBRARY", "-DLIBCXX_BUILDING_LIBCXXABI", "-D_GNU_SOURCE", "-DNDEBUG",
        f"-I{library}/libcxx/src", f"-I{library}/libcxxabi/include", f"-I{library}/libcxxabi/src",
        f"-I{library}/libunwind/include", f"-I{library}/libunwind/src", f"-I{library}/libcxx/libc",
        "-D_LIBUNWIND_HIDE_SYMBOLS", "-D_LIBUNWIND_IS_NATIVE_ONLY", "-DHAVE___CXA_THREAD_ATEXIT_IMPL",
    ]  # fmt: skip
    skipped = r"/(support|pstl|experimental|tz|.*libdispatch|.*exception_fallback|.*cxa_noexception|stdlib_new_delete)"
    libraries = {
        "libc++_static.a": sorted((library / "libcxx/src").rglob("*.cpp")),
        "libc++abi.a": sorted((library / "libcxxabi/src").glob("*.cpp")),
        "libunwind.a": [
            path
            for path in sorted((library / "libunwind/src").glob("*"))
            if path.suffix in (".cpp", ".c", ".S") and "SEH" not in path.name and "AIX" not in path.name
        ],
    }
    destination = sysroot / "usr/lib" / triple
    destination.mkdir(parents=True, exist_ok=True)
    for name, sources in libraries.items():
        objects = []
        for source in sources:
            relative = str(source.relative_to(library))
            if re.search(skipped, "/" + relative.split("/src/")[1]) or "Wasm" in source.name or "EHABI" in source.name:
                continue
            target = work / triple / (relative.replace("/", "_") + ".o")
            target.parent.mkdir(parents=True, exist_ok=True)
            standard = ["-std=c++23"] if source.suffix == ".cpp" else []
            compiler = common if standard else ["clang", *common[1:]]
            run(*compiler, *standard, source, "-o", target)
            objects.append(target)
        run("llvm-ar", "rcs", destination / name, *objects)


def make_start_files(bionic: pathlib.Path, sysroot: pathlib.Path, triple: str) -> None:
    folder = sysroot / "usr/lib" / triple / str(API)
    sources = bionic / "libc/arch-common/bionic"
    compile_for = ["clang", f"--target={triple}{API}", f"--sysroot={sysroot}", "-O2", "-fPIC", "-w", "-c"]
    run(*compile_for, sources / "crtbegin_so.c", "-o", folder / "crtbegin_so.o")
    # The end of the list of unwind tables; Android's own file adds a note that only debuggers read.
    end = '.section .eh_frame,"a",@progbits\n.align 4\n.zero 4\n.section .note.GNU-stack,"",@progbits\n'
    run(*compile_for, "-x", "assembler", "-", "-o", folder / "crtend_so.o", input=end, text=True)


def make_compiler(zig: pathlib.Path, prebuilt: pathlib.Path, sysroot: pathlib.Path) -> None:
    """bin/, with links to the compiler here, and a resource directory that has Android's builtins."""
    binaries = prebuilt / "bin"
    binaries.mkdir(parents=True)
    for tool in TOOLS:
        os.symlink(shutil.which(tool), binaries / tool)
    ours = pathlib.Path(subprocess.check_output(["clang", "-print-resource-dir"], text=True).strip())
    resources = prebuilt / "lib/clang" / ours.name
    shutil.copytree(ours / "include", resources / "include", dirs_exist_ok=True)
    for name in ("clang", "clang++"):
        wrapper = binaries / name
        wrapper.write_text(
            "#!/bin/sh\n"
            # The folder itself, where bin/ is a link to it.
            'here=$(cd -P "$(dirname "$0")" && cd .. && pwd)\n'
            # What an NDK's clang takes by itself for Android.
            f'exec {shutil.which(name)} -resource-dir "$here/lib/clang/{ours.name}" -rtlib=compiler-rt'
            ' --unwindlib=libunwind -Wno-unused-command-line-argument "$@"\n'
        )
        wrapper.chmod(0o755)
    for architecture, (triple, _, _) in ARCHITECTURES.items():
        folder = resources / "lib/linux"
        folder.mkdir(parents=True, exist_ok=True)
        run(
            zig / "zig", "build-lib", "-O", "ReleaseFast", "-fPIC", "-target", f"{architecture}-linux-android",
            "-fcompiler-rt", "-fno-stack-check", "-fno-stack-protector",
            f"-femit-bin={folder}/libclang_rt.builtins-{architecture}-android.a", zig / "lib/compiler_rt.zig",
        )  # fmt: skip
        emutls = folder / f"emutls-{architecture}.o"
        run(
            "clang", f"--target={triple}{API}", f"--sysroot={sysroot}", "-O2", "-fPIC", "-w", "-x", "c", "-c", "-",
            "-o", emutls, input=EMUTLS, text=True,
        )  # fmt: skip
        run("llvm-ar", "rs", folder / f"libclang_rt.builtins-{architecture}-android.a", emutls)
        emutls.unlink()
        (folder / architecture).mkdir(exist_ok=True)
        shutil.copy(sysroot / "usr/lib" / triple / "libunwind.a", folder / architecture / "libunwind.a")


def main() -> None:
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    bionic, jni, zig, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    if out.exists():
        sys.exit(f"{out} exists already; name a folder to be made")
    prebuilt = out / "toolchains/llvm/prebuilt/linux-x86_64"
    sysroot = prebuilt / "sysroot"
    make_headers(bionic, zig, sysroot / "usr/include")
    shutil.copy(jni, sysroot / "usr/include/jni.h")
    lists = {
        "libc.so": bionic / "libc/libc.map.txt",
        "libm.so": bionic / "libm/libm.map.txt",
        "libdl.so": bionic / "libdl/libdl.map.txt",
    }
    for triple, _, name in ARCHITECTURES.values():
        folder = sysroot / "usr/lib" / triple / str(API)
        folder.mkdir(parents=True)
        for soname, symbol_list in lists.items():
            make_library(symbol_list, soname, triple, name, folder)
        make_start_files(bionic, sysroot, triple)
        make_cxx_runtime(zig, sysroot, triple, out / "work")
    make_compiler(zig, prebuilt, sysroot)
    shutil.rmtree(out / "work")
    (out / "source.properties").write_text("Pkg.Desc = NDK-shaped, made from sources\nPkg.Revision = 0.0.0\n")
    print(f"made {out}")


if __name__ == "__main__":
    main()
