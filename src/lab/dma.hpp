// The DMA engine between the NIC and its host (LHS): takes its commands in order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "lab/machine.hpp"
#include "lab/resource.hpp"

namespace via::lab {

/// A transfer that others look at, or wait for.
struct Transfer {
    explicit Transfer(Schedule& schedule) : changed(schedule) {}
    bool begun = false;
    bool done = false;
    Signal changed;
    void begin() {
        begun = true;
        changed.notify();
    }
    void end() {
        begun = done = true;
        changed.notify();
    }
};
using SharedTransfer = std::shared_ptr<Transfer>;

/// Moves one transfer's bytes at a time; up to dma.under_way transfers have been asked for, and
/// their starts overlap.
class DmaEngine {
public:
    DmaEngine(Schedule& schedule, Ledger& ledger, const Costs& costs, Resource& bus,
              const std::string& name);

    struct Command {
        bool to_host = false;
        std::int64_t bytes = 0;
        Share share = Share::bus;  ///< else of start and bytes alike
        const char* what = "";
        MessageId message = no_message;
        SharedTransfer source;           ///< to the host: what fills the FIFO meanwhile, or none
        std::function<void()> finished;  ///< called when the last byte has moved
    };
    void push(Command command);
    bool idle() const { return queue_.empty() && !busy_; }
    std::uint64_t commands() const { return commands_; }

private:
    struct Waiting {
        Command command;
        Time asked{};  ///< of the bus, if it is one of the first that are under way
    };
    Task<> run();
    Task<> move(const Command& command);
    void ask();

    Schedule& schedule_;
    Ledger& ledger_;
    const Costs& costs_;
    Resource& bus_;
    Resource engine_;
    Signal pushed_;
    std::deque<Waiting> queue_;
    std::size_t asked_ = 0;  ///< of the queue
    bool busy_ = false;
    std::uint64_t commands_ = 0;
};

}  // namespace via::lab
