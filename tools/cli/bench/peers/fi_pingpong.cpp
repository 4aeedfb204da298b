// libfabric's providers, by its public tool fi_pingpong: a ping-pong that polls, without warm-up.
// tcp runs with endpoints of type msg and of type rdm, and the faster one counts.
#include <cmath>

#include "bench/peers/printed.hpp"
#include "bench/peers/their_tool.hpp"

namespace via::bench {

namespace {

constexpr std::uint64_t most_bytes = 1 << 20;

class FiPingpong final : public TheirTool {
public:
    explicit FiPingpong(Provider provider)
        : TheirTool(
              {"fi_pingpong", "fi_info", "--version", "libfabric", "libfabric", "libfabric-bin"}),
          provider_(provider) {}

    std::string refuses(const Question& question) const override {
        if (question.bench != Bench::latency) return "has no stream, only a ping-pong";
        if (question.size == 0) return "has no empty message";
        if (question.size > most_bytes) return "is asked for messages of up to 1M only";
        return {};
    }
    bool within_host() const override { return provider_ == Provider::shm; }
    std::vector<std::string> variants() const override {
        if (provider_ == Provider::shm) return {"rdm"};
        return {"msg", "rdm"};
    }
    ToolCommand command(const ToolOrder& order) const override {
        ToolCommand command;
        command.arguments = {tool(),
                             "-p",
                             provider_ == Provider::shm ? "shm" : "tcp",
                             "-e",
                             order.variant,
                             "-I",
                             std::to_string(order.messages),
                             "-S",
                             std::to_string(order.question.size)};
        const std::string port = std::to_string(order.port);
        if (order.side == Side::second) {
            command.arguments.insert(command.arguments.end(), {"-B", port});
        } else {
            command.arguments.insert(command.arguments.end(), {"-P", port, order.address});
        }
        return command;
    }
    // Its "usec/xfer" is the time of all round trips by twice their number.
    Result<double> message_ns(std::string_view printed, const ToolOrder& order) const override {
        const PrintedRow row(printed, "bytes", " ");
        const double us = row.number("usec/xfer");
        const double rate = row.number("MB/sec");
        if (us <= 0 || rate <= 0) return makes_no_sense(printed);
        // Both are rounded to hundredths.
        const double expected = static_cast<double>(order.question.size) / us;
        const double allowed = 0.01 + expected * (0.01 + 0.01 / us);
        if (std::abs(rate - expected) > allowed) return makes_no_sense(printed);
        return us * 1000;
    }

private:
    Provider provider_;
};

}  // namespace

std::unique_ptr<ToolPeer> make_fi_pingpong(Provider provider) {
    return std::make_unique<FiPingpong>(provider);
}

}  // namespace via::bench
