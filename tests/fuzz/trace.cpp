// A trace's file as anybody may have written it, compressed or not. What is taken is written again
// with the same bytes; what is refused is refused in words that can be printed.
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "input.hpp"
#include "lab/study/trace.hpp"
#include "laboratory/trace_file.hpp"

using namespace via;
using lab::study::decode;
using lab::study::encode;
using lab::study::Trace;

namespace {

/// A file that only this process has.
class File {
public:
    explicit File(std::string_view bytes) : file_(::memfd_create("trace", MFD_CLOEXEC)) {
        const auto size = static_cast<ssize_t>(bytes.size());
        fuzz::require(file_ >= 0, "there is a file in memory");
        fuzz::require(::write(file_, bytes.data(), bytes.size()) == size, "it can be written");
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() { ::close(file_); }
    std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

private:
    int file_;
};

void check_words(const std::expected<Trace, std::string>& read) {
    if (read) return;
    for (const char c : read.error())
        fuzz::require(c >= ' ' && c <= '~', "why it is refused can be printed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto plain = decode(bytes);
    check_words(plain);
    fuzz::require(!plain || encode(*plain) == bytes, "there is one way to write a trace");
    const auto file = cli::load_trace(File(bytes).path());
    check_words(file);
    if (!bytes.starts_with("\x1f\x8b"))
        fuzz::require(file.has_value() == plain.has_value(), "a file holds what its bytes hold");
    if (file) {
        const auto again = decode(encode(*file));
        fuzz::require(again && again->events == file->events, "what was read can be written");
    }
    return 0;
}
