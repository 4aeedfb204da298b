// UCX by its public tool ucx_perftest. Its receiver does not read a message's bytes, and that of a
// put does not even learn of it but by looking at memory.
#include <algorithm>

#include "bench/peers/printed.hpp"
#include "bench/peers/their_tool.hpp"

namespace via::bench {

namespace {

constexpr std::uint64_t most_bytes = 4u << 20;
constexpr std::uint64_t most_uct_bytes = 4096;  // a copied active message over posix memory
constexpr std::uint64_t least_warmup = 20;

struct Tests {
    const char* latency;
    const char* stream;
    const char* transports;  // UCX_TLS
};

Tests tests_of(UcxTest test) {
    switch (test) {
        case UcxTest::tag:
            return {"tag_lat", "tag_bw", "posix,self"};
        case UcxTest::am:
            return {"ucp_am_lat", "ucp_am_bw", "posix,self"};
        case UcxTest::put:
            return {"ucp_put_lat", "ucp_put_bw", "posix,self"};
        case UcxTest::uct_am:
            return {"am_lat", "am_bw", "posix,self"};
        case UcxTest::tag_tcp:
            break;
    }
    return {"tag_lat", "tag_bw", "tcp,self"};
}

class UcxPerftest final : public TheirTool {
public:
    explicit UcxPerftest(UcxTest test)
        : TheirTool({"ucx_perftest", "ucx_info", "-v", "Version", "UCX", "ucx-utils"}),
          test_(test) {}

    Question adapt(const Question& asked) const override {
        Question question = TheirTool::adapt(asked);
        if (test_ == UcxTest::put) question.op = Op::write;
        return question;
    }
    std::string refuses(const Question& question) const override {
        if (question.size == 0) return "is asked for no empty message";
        if (question.size > most_bytes) return "is asked for messages of up to 4M only";
        if (test_ == UcxTest::uct_am && question.size > most_uct_bytes) {
            return "carries at most 4096 bytes in one message";
        }
        return {};
    }
    bool within_host() const override { return test_ != UcxTest::tag_tcp; }
    ToolCommand command(const ToolOrder& order) const override {
        const Tests tests = tests_of(test_);
        const bool stream = is_stream(order.question);
        ToolCommand command;
        command.settings = {fmt::format("UCX_TLS={}", tests.transports)};
        command.arguments = {tool(),
                             "-t",
                             stream ? tests.stream : tests.latency,
                             "-s",
                             std::to_string(order.question.size),
                             "-n",
                             std::to_string(order.messages),
                             "-w",
                             std::to_string(std::max(order.messages / 10, least_warmup)),
                             "-p",
                             std::to_string(order.port),
                             "-f",
                             "-v"};
        const auto add = [&](std::initializer_list<std::string> more) {
            command.arguments.insert(command.arguments.end(), more);
        };
        if (test_ == UcxTest::uct_am) {
            add({"-d", "memory", "-x", "posix", "-D",
                 order.question.size <= 64 ? "short" : "bcopy"});
        } else if (stream) {
            add({"-O", std::to_string(order.question.depth)});
        }
        if (order.side == Side::first) add({order.address});
        return command;
    }
    // Its bandwidth is in units of 2^20 bytes, its latency half a round trip.
    Result<double> message_ns(std::string_view printed, const ToolOrder& order) const override {
        const PrintedRow row(printed, "iterations,", ", ");
        const double rate = row.number("overall_mr");
        const double us = row.number("overall_lat");
        const double bytes = row.number("overall_bw") * (1 << 20);
        const auto messages = static_cast<double>(order.messages);
        // The rate has no fraction, the others are rounded to thousandths and hundredths.
        const bool sound = rate > 0 && us > 0 && agree(row.number("iterations"), messages, 0.001) &&
                           agree(rate * us, 1e6, 0.01 + 0.001 / us + 1 / rate) &&
                           agree(bytes, rate * static_cast<double>(order.question.size),
                                 0.01 + 0.01 * (1 << 20) / std::max(bytes, 1.0));
        if (!sound) return makes_no_sense(printed);
        return 1e9 / rate;
    }

private:
    UcxTest test_;
};

}  // namespace

std::unique_ptr<ToolPeer> make_ucx_perftest(UcxTest test) {
    return std::make_unique<UcxPerftest>(test);
}

}  // namespace via::bench
