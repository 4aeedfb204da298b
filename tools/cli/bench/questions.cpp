#include "bench/questions.hpp"

#include <algorithm>

#include "bench/link.hpp"
#include "bench/sweep.hpp"

namespace via::bench {

namespace {

constexpr std::uint64_t largest_size = 64u << 20;
constexpr std::uint32_t most_segments = 252;  // the least MaxSegmentsPerDesc (VIPL 1.9)

// A ping-pong has one message under way.
std::uint32_t depth_for(std::uint32_t asked, const Question& question) {
    if (question.bench == Bench::latency) return 1;
    constexpr std::uint64_t under_way_bytes = 64u << 20;
    const std::uint64_t fits = under_way_bytes / std::max<std::uint64_t>(question.size, 64);
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(asked, std::max<std::uint64_t>(fits, 2)));
}

std::vector<std::string> texts_of(const cli::BenchOptions& options, Bench bench) {
    if (!options.sizes.empty()) return options.sizes;
    if (options.op == "atomic") return {"8"};
    if (bench == Bench::latency) return {"8", "64", "4096"};
    if (bench == Bench::bandwidth) return {"4096", "64K", "1M"};
    return {"8"};
}

// All but size and depth.
Question kind_of(const cli::BenchOptions& options) {
    Question question;
    question.bench = options.bench == "bandwidth" ? Bench::bandwidth
                     : options.bench == "rate"    ? Bench::rate
                                                  : Bench::latency;
    question.op = options.op == "write"    ? Op::write
                  : options.op == "read"   ? Op::read
                  : options.op == "atomic" ? Op::atomic
                                           : Op::send;
    question.wait = options.wait == "block" ? Wait::block : Wait::poll;
    question.reliability = options.reliability == "unreliable"  ? Reliability::unreliable
                           : options.reliability == "reception" ? Reliability::reception
                                                                : Reliability::delivery;
    question.cq = options.cq || options.senders > 1;
    question.immediate = options.immediate;
    question.both_ways = options.both_ways;
    question.segments = options.segments;
    question.post_many = options.post_many;
    question.senders = options.senders;
    question.spinners = options.spinners;
    if (options.reuse >= 0) question.reuse = static_cast<std::uint32_t>(options.reuse);
    // --vis: idle ones besides those that carry messages.
    question.active_vis = options.rotate_vis ? options.vis + 1 : options.active_vis;
    question.vis = options.rotate_vis ? options.vis : options.active_vis - 1 + options.vis;
    return question;
}

std::string nonsense_of_senders(const Question& question) {
    constexpr std::size_t most_memory = 512u << 20;
    if (arena_bytes_for(question) > most_memory) {
        return fmt::format(
            "--senders {}: with messages of {} bytes and this --depth they take "
            "more than {} MB",
            question.senders, question.size, most_memory >> 20);
    }
    if (question.bench == Bench::latency) return "--senders: of bandwidth and rate only";
    if (question.op != Op::send) return "--senders: they send, --op is not for them";
    if (question.wait == Wait::block) return "--senders: their receiver polls its completion queue";
    if (question.vis > 0) return "--senders: each has one VI; no --vis, --active-vis";
    if (question.both_ways) return "--senders and --both-ways: one or the other";
    if (question.reuse) return "--senders and --reuse: their buffers come in turn";
    if (question.segments > 1 || question.immediate) {
        return "--senders: plain messages, without --segments and --immediate";
    }
    return {};
}

}  // namespace

std::string nonsense_of(const Question& question) {
    if (question.active_vis < 1 || question.active_vis > std::uint64_t{question.vis} + 1) {
        return "--active-vis: at least one, at most as many as there are";
    }
    if (question.segments < 1 || question.segments > most_segments) {
        return fmt::format("--segments: from 1 to {}", most_segments);
    }
    if (question.segments > 1 && question.size < question.segments) {
        return fmt::format("--segments {}: a message of {} bytes has not so many pieces",
                           question.segments, question.size);
    }
    if (question.immediate && is_answered(question.op)) {
        return "--immediate: RDMA reads and atomic operations carry none";
    }
    if (is_answered(question.op) && question.reliability == Reliability::unreliable) {
        return fmt::format("--op {} --reliability unreliable: it needs a reliable level",
                           name_of(question.op));
    }
    if (question.op == Op::atomic && (question.size != 8 || question.segments > 1)) {
        return "--op atomic: of a word, --size 8 in one segment";
    }
    if (question.reuse && *question.reuse > 100) return "--reuse: a percentage, 0 to 100";
    if (question.reuse && question.size < 8) {
        return "--reuse: messages under 8 bytes cannot prove in a shared buffer who they are";
    }
    if (question.both_ways && question.bench == Bench::latency) {
        return "--both-ways: of bandwidth and rate; a ping-pong goes both ways in turn";
    }
    if (question.both_ways && is_answered(question.op)) {
        return "--both-ways: of --op send and write";
    }
    if (question.both_ways && question.wait == Wait::block && !question.cq) {
        return "--both-ways --wait block: needs --cq, to sleep on both directions at once";
    }
    if (question.post_many < 1 || question.post_many > most_posted) {
        return fmt::format("--post-many: from 1 to {}", most_posted);
    }
    if (question.post_many > 1 && (question.bench == Bench::latency || is_answered(question.op) ||
                                   question.active_vis > 1 || question.senders > 1)) {
        return "--post-many: of one VI's bandwidth and rate, --op send and write";
    }
    return question.senders > 1 ? nonsense_of_senders(question) : std::string();
}

Result<std::vector<Question>> questions_of(const cli::BenchOptions& options) {
    if (options.rotate_vis && options.active_vis > 1) {
        return fail("--rotate-vis and --active-vis: one or the other");
    }
    Question question = kind_of(options);
    std::vector<Question> questions;
    for (const std::string& text : texts_of(options, question.bench)) {
        const auto sizes = parse_sizes(text, largest_size);
        if (!sizes) {
            return fail(
                "--size {}: want bytes up to 64M, for instance 8,64,4096 or 64K,1M, or "
                "netpipe:MAX",
                text);
        }
        for (const std::uint64_t size : *sizes) {
            question.size = size;
            question.depth = depth_for(options.depth, question);
            if (const auto why = nonsense_of(question); !why.empty()) return fail("{}", why);
            if (std::find(questions.begin(), questions.end(), question) == questions.end()) {
                questions.push_back(question);
            }
        }
    }
    return questions;
}

}  // namespace via::bench
