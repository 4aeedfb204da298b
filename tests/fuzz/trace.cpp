// A trace's file as anybody may have written it, compressed or not. What is taken is written again
// with the same bytes; what is refused is refused in words that can be printed.
#include <string>
#include <string_view>

#include "input.hpp"
#include "lab/study/trace.hpp"
#include "laboratory/trace_file.hpp"
#include "memory_file.hpp"

using namespace via;
using lab::study::decode;
using lab::study::encode;
using lab::study::Trace;

namespace {

/// What is taken can be replayed in a time that has an end.
void check_lengths(const Trace& trace) {
    std::uint64_t sum = 0;
    for (const lab::study::TraceEvent& event : trace.events) {
        if (event.kind < lab::study::TraceKind::send) continue;
        fuzz::require(event.length() <= lab::study::trace_message_max, "a NIC takes each message");
        sum += event.length();
    }
    fuzz::require(sum <= lab::study::trace_messages_max, "all messages together have an end");
}

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
    if (plain) check_lengths(*plain);
    fuzz::require(!plain || encode(*plain) == bytes, "there is one way to write a trace");
    const auto file = cli::load_trace(fuzz::MemoryFile(std::as_bytes(std::span(bytes))).path());
    check_words(file);
    if (!bytes.starts_with("\x1f\x8b"))
        fuzz::require(file.has_value() == plain.has_value(), "a file holds what its bytes hold");
    if (file) {
        check_lengths(*file);
        const auto again = decode(encode(*file));
        fuzz::require(again && again->events == file->events, "what was read can be written");
    }
    return 0;
}
