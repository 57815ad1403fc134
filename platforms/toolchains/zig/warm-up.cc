// A program whose link makes zig build its runtimes.
#include <string>

int main(int argc, char** argv) { return std::string(argv[0]).empty() + argc; }
