#include "bench/types.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace via::bench {

std::unexpected<Failure> fail_errno(std::string_view what) {
    return fail("{}: {}", what, std::strerror(errno));
}

namespace {

constexpr std::uint64_t pool_bytes = 16ull << 20;

std::uint64_t least_buffers(const Question& question) {
    return std::bit_ceil(std::max(question.depth, 1u));
}

// As many as fit into `bytes`, down to a power of two, from `least` to `most`.
std::uint32_t pow2_buffers(const Question& question, std::uint64_t bytes, std::uint64_t least,
                           std::uint64_t most) {
    const std::uint64_t fits = std::bit_floor(bytes / std::max<std::uint64_t>(question.size, 64));
    return static_cast<std::uint32_t>(std::clamp(fits, least, std::max(least, most)));
}

}  // namespace

std::string_view name_of(Bench bench) {
    switch (bench) {
        case Bench::latency:
            return "latency";
        case Bench::bandwidth:
            return "bandwidth";
        case Bench::rate:
            return "rate";
        case Bench::verify:
            return "verify";
    }
    return "?";
}

std::string_view name_of(Op op) {
    switch (op) {
        case Op::send:
            return "send";
        case Op::write:
            return "write";
        case Op::read:
            return "read";
        case Op::atomic:
            return "atomic";
    }
    return "?";
}

std::string_view name_of(Wait wait) { return wait == Wait::poll ? "poll" : "block"; }

std::string_view name_of(Mode mode) {
    switch (mode) {
        case Mode::near:
            return "near";
        case Mode::between:
            return "between";
        case Mode::far:
            return "far";
        case Mode::remote:
            break;
    }
    return "remote";
}

std::string_view name_of(Reliability reliability) {
    switch (reliability) {
        case Reliability::unreliable:
            return "unreliable";
        case Reliability::delivery:
            return "delivery";
        case Reliability::reception:
            break;
    }
    return "reception";
}

std::string_view unit_of(Bench bench) {
    switch (bench) {
        case Bench::bandwidth:
            return "MB/s";
        case Bench::rate:
            return "M/s";
        default:
            return "us";
    }
}

std::uint32_t buffers_for(const Question& question) {
    if (question.reuse) {
        // So many that the caches have forgotten a buffer when its turn comes again.
        constexpr std::uint64_t cold_bytes = 32ull << 20;
        constexpr std::uint64_t most_cold = 16384;
        return pow2_buffers(question, cold_bytes, buffers_to_reuse(question), most_cold);
    }
    if (!is_stream(question)) return 2;
    const std::uint64_t least = least_buffers(question);
    // The receiver of many senders has such a pool for each of them.
    return pow2_buffers(question, pool_bytes / question.senders, least,
                        std::max<std::uint64_t>(256, least));
}

std::uint32_t buffers_to_reuse(const Question& question) {
    if (!question.reuse) return 0;
    if (!is_stream(question)) return 1;
    const std::uint64_t least = least_buffers(question);
    return pow2_buffers(question, pool_bytes, least, 4 * least);
}

std::uint64_t stride_for(const Question& question) {
    // Room behind the message that a check of every byte can find untouched.
    const std::uint64_t guard = question.bench == Bench::verify ? 64 : 0;
    return (std::max<std::uint64_t>(question.size, 1) + guard + 63) / 64 * 64;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
    std::uint64_t value = 0;
    const char* begin = text.data();
    const char* end = begin + text.size();
    auto [rest, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || rest == begin) return std::nullopt;
    std::uint64_t unit = 1;
    if (rest != end && (*rest == 'k' || *rest == 'K')) unit = 1024;
    if (rest != end && (*rest == 'm' || *rest == 'M')) unit = 1024 * 1024;
    if (unit != 1) ++rest;
    if (rest != end || value > (1ull << 40) / unit) return std::nullopt;
    return value * unit;
}

std::string size_text(std::uint64_t bytes) {
    constexpr std::uint64_t mega = 1ull << 20;
    if (bytes >= mega && bytes % mega == 0) return fmt::format("{}M", bytes / mega);
    if (bytes >= 1024 && bytes % 1024 == 0) return fmt::format("{}K", bytes / 1024);
    return fmt::format("{}", bytes);
}

}  // namespace via::bench
