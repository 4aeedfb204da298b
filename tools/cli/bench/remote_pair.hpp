// A pair whose second process is on another machine, where `via bench serve` starts it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/address.hpp"
#include "bench/control.hpp"
#include "bench/pair.hpp"

namespace via::bench {

// The other machine, ready to work for us until this ends.
class Peer {
public:
    // `where` is HOST[:PORT]. Fails with the other machine's reason when it refuses.
    static Result<std::shared_ptr<Peer>> connect(const std::string& where, int max_seconds);

    const Address& own_address() const { return own_; }
    const Address& address() const { return address_; }
    ControlLine& line() { return line_; }
    std::uint16_t next_channel() { return channels_++; }

private:
    ControlLine line_;
    Address own_;
    Address address_;
    std::uint16_t channels_ = 0;
};

// Connects, within a few seconds.
Result<FileHandle> connect_to(const Address& address);

class RemotePair final : public AnyPair {
public:
    // `like` says how the channel is opened there; number, name and memory are filled in here.
    static Result<std::unique_ptr<RemotePair>> start(std::unique_ptr<Channel> channel,
                                                     const PairSetup& setup, const Open& like,
                                                     std::shared_ptr<Peer> peer);

    // Ends our process, and asks the other machine to end its.
    ~RemotePair() override;

    Result<RawSample> ask(const Question& question, const Effort& effort, int timeout_ms) override;
    const Channel& channel() const override { return *channel_; }

private:
    RemotePair(std::unique_ptr<Channel> channel, std::shared_ptr<Peer> peer)
        : channel_(std::move(channel)), peer_(std::move(peer)), number_(peer_->next_channel()) {}
    Status open(PairSetup setup, Open open);
    Result<FileHandle> wire_to_other(const Open& open, std::uint64_t& word);
    Status hear(std::size_t side, std::array<Answer, 2>& answers);
    Result<std::array<Answer, 2>> collect(int timeout_ms);
    Result<RawSample> sample_of(const std::array<Answer, 2>& answers, int timeout_ms) const;
    Shared& shared_view() const { return *reinterpret_cast<Shared*>(shared_.base()); }
    void end(bool politely);

    std::unique_ptr<Channel> channel_;
    std::shared_ptr<Peer> peer_;
    std::uint16_t number_;
    SharedMap shared_;
    ChildProcess child_;
    bool broken_ = false;
};

}  // namespace via::bench
