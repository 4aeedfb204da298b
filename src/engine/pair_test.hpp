// Two engines whose frames a test carries over by hand, and programs that use them. For the tests
// of this room: no device, no NIC, no time but what a test says.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/check.hpp"
#include "engine/engine.hpp"
#include "memory/copy.hpp"
#include "queue/descriptor.hpp"

namespace via::engine::test {

constexpr PathId the_path = 0;

inline Discriminator word(const char* text) {
    Discriminator discriminator;
    discriminator.length = static_cast<std::uint16_t>(std::strlen(text));
    std::memcpy(discriminator.bytes.data(), text, discriminator.length);
    return discriminator;
}

/// A frame on its way, as bytes.
struct Carried {
    std::vector<std::byte> header;
    std::vector<std::byte> payload;
    bool numbered = false;  ///< must arrive, on a path that retransmits
    std::uint32_t number = 0;

    wire::Header parsed() const {
        wire::Header result;
        EXPECT_EQ(wire::parse(header.data(), header.size(), result), wire::ParseError::none);
        return result;
    }
};

/// An engine with one path.
struct Side {
    explicit Side(std::uint32_t payload_max = 64, bool lossy = false)
        : memory(256, 64), engine(limits, memory, counters), retransmits(lossy) {
        engine.on_path_up(the_path, payload_max, {}, lossy);
    }

    /// The next frame this side wants to send, if any; published at once.
    std::optional<Carried> emit() {
        engine.connections().flush_late();  // as behind the turn before
        FrameShape shape;
        for (;;) {
            if (!engine.outbound().next_frame(the_path, shape)) return std::nullopt;
            if (shape.header_length != 0) break;
            engine.outbound().carry_out(the_path);
        }
        Carried frame{std::vector<std::byte>(shape.header_length),
                      std::vector<std::byte>(shape.payload_length), false, 0};
        frame.numbered = retransmits && shape.must_arrive;
        frame.number = shape.again ? shape.number : frame.numbered ? frames++ : 0;
        engine.outbound().emit(the_path,
                               {frame.header.data(), frame.payload.data(), false, frame.number});
        engine.outbound().on_transmitted();
        return frame;
    }
    FrameVerdict take(const Carried& frame) {
        return engine.on_frame(the_path, {frame.header.data(), frame.header.size(),
                                          frame.payload.empty() ? nullptr : frame.payload.data(),
                                          frame.payload.size()});
    }
    FrameVerdict take(const wire::Header& header, std::vector<std::byte> payload = {}) {
        Carried frame{std::vector<std::byte>(wire::header_length(header.flags)), std::move(payload),
                      false, 0};
        wire::emit(header, frame.header.data());
        return take(frame);
    }
    std::vector<ErrorCode> events() {
        std::vector<ErrorCode> codes;
        ErrorEvent event;
        while (engine.news().next_event(event)) codes.push_back(event.code);
        return codes;
    }

    NicLimits limits;
    Counters counters{};
    memory::MemoryTable memory;
    Engine engine;
    bool retransmits;
    std::uint32_t frames = 0;  ///< that must arrive, so far
};

/// Two sides; carries frames from one to the other.
struct Pair {
    explicit Pair(std::uint32_t payload_max = 64, bool lossy = false)
        : a(payload_max, lossy), b(payload_max, lossy) {}

    /// Carries everything both want to send, in turns, until both are quiet. Honest frames are
    /// never refused; answers to lies (`lied`) may be.
    void carry(bool lied = false) {
        for (bool moved = true; moved;) {
            moved = false;
            for (Side* from : {&a, &b}) {
                const auto frame = from->emit();
                if (!frame) continue;
                moved = true;
                const FrameVerdict verdict = (from == &a ? b : a).take(*frame);
                if (frame->numbered)
                    from->engine.outbound().on_reaped(the_path, frame->number, false);
                EXPECT_TRUE(
                    (verdict != FrameVerdict::refused && verdict != FrameVerdict::hostile) || lied)
                    << from->engine.last_refusal();
            }
        }
    }

    Side a;
    Side b;
};

inline ViAttributes attributes(Reliability reliability) {
    ViAttributes result;
    result.reliability = reliability;
    result.transfer_length_max = 4096;
    result.rdma_write = result.rdma_read = true;
    return result;
}

/// What a program has at one end: a VI, registered memory, descriptors.
class Program {
public:
    static constexpr std::size_t memory_length = 8192;

    explicit Program(Side& side, const ViAttributes& wanted)
        : side_(side), vi_(*side.engine.create_vi(wanted, nullptr, nullptr).value()) {
        memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, memory_length)));
        std::memset(memory_.get(), 0, memory_length);
        descriptors_.reset(static_cast<queue::Descriptor*>(
            std::aligned_alloc(64, descriptors_max * sizeof(queue::Descriptor))));
        handle_ = *side.memory.add(address(0), memory_length, {memory::no_tag, true, true});
    }

    Vi& vi() { return vi_; }
    ViState state() const { return vi_.state_now(); }
    memory::MemoryHandle handle() const { return handle_; }
    std::byte* at(std::size_t offset) { return memory_.get() + offset; }
    std::uint64_t address(std::size_t offset) {
        return reinterpret_cast<std::uint64_t>(memory_.get()) + offset;
    }
    /// The region goes, whatever uses it.
    void forget_region() {
        side_.memory.suspend(handle_);
        side_.memory.remove(handle_);
    }
    /// Fills memory with bytes that tell `seed` and place.
    void fill(std::size_t offset, std::size_t length, unsigned seed) {
        for (std::size_t n = 0; n < length; ++n) *at(offset + n) = pattern(seed, n);
    }
    bool holds(std::size_t offset, std::size_t length, unsigned seed) {
        for (std::size_t n = 0; n < length; ++n)
            if (*at(offset + n) != pattern(seed, n)) return false;
        return true;
    }
    queue::Segment segment(std::size_t offset, std::uint32_t length) {
        return {address(offset), handle_, length};
    }

    /// A descriptor of up to two segments, not posted.
    queue::Descriptor& make(std::uint16_t control, std::initializer_list<queue::Segment> segments,
                            std::uint32_t length) {
        queue::Descriptor& descriptor = descriptors_.get()[made_++ % descriptors_max];
        std::memset(static_cast<void*>(&descriptor), 0, sizeof descriptor);
        descriptor.control.control = control;
        descriptor.control.segment_count = static_cast<std::uint16_t>(segments.size());
        descriptor.control.length = length;
        std::copy(segments.begin(), segments.end(), descriptor.segments);
        return descriptor;
    }
    /// `ring`: not when the NIC looks by itself whether the message is a common one.
    queue::Descriptor& post_send(queue::Descriptor& descriptor, bool ring = true) {
        post(vi_.send, descriptor, false, ring);
        return descriptor;
    }
    /// `ring`: the NIC hears of it, as it does when the VI is not connected or the post is faulty.
    queue::Descriptor& post_receive(queue::Descriptor& descriptor, bool ring = true) {
        post(vi_.receive, descriptor, true, ring);
        return descriptor;
    }
    queue::Descriptor& send(std::size_t offset, std::uint32_t length, std::uint16_t control = 0,
                            std::uint32_t immediate = 0) {
        queue::Descriptor& descriptor = make(control, {segment(offset, length)}, length);
        descriptor.control.immediate_data = immediate;
        return post_send(descriptor);
    }
    queue::Descriptor& receive(std::size_t offset, std::uint32_t length) {
        return post_receive(make(0, {segment(offset, length)}, 0));
    }
    queue::Descriptor& rdma(std::uint16_t control, std::size_t offset, std::uint32_t length,
                            std::uint64_t remote_address, memory::MemoryHandle remote_handle) {
        return post_send(
            make(control, {{remote_address, remote_handle, 0}, segment(offset, length)}, length));
    }

    /// What was in the peer's word comes to `offset`.
    queue::Descriptor& atomic(const memory::WordChange& change, std::size_t offset,
                              std::uint64_t remote_address, memory::MemoryHandle remote_handle,
                              std::uint16_t control = 0) {
        queue::Descriptor& descriptor =
            make(control, {{remote_address, remote_handle, 0}, segment(offset, 8)}, 8);
        queue::ControlSegment entry = descriptor.control;
        queue::Segment segments[3] = {descriptor.segments[0], descriptor.segments[1]};
        const std::uint64_t words[2] = {change.operand, change.desired};
        std::memcpy(&segments[2], words, sizeof words);
        const memory::Region region = side_.memory.look(handle_);
        const CheckContext context{side_.memory, region, vi_.attributes.tag,
                                   vi_.attributes.transfer_length_max, vi_.reliable()};
        const std::uint32_t fault = check_atomic(context, entry, segments);
        entry.segment_count = 3;
        entry.control |= static_cast<std::uint16_t>(queue::control::atomic |
                                                    (change.adds ? queue::control::adds : 0));
        EXPECT_EQ(vi_.send.work.post(&descriptor, handle_, entry, segments, fault, 1024),
                  Status::success);
        side_.engine.on_doorbell(vi_);
        return descriptor;
    }
    std::uint64_t word_at(std::size_t offset) {
        std::uint64_t word = 0;
        std::memcpy(&word, at(offset), sizeof word);
        return word;
    }
    void put_word(std::size_t offset, std::uint64_t word) {
        std::memcpy(at(offset), &word, sizeof word);
    }

    /// Takes a finished descriptor off; nullptr if the head is not done.
    queue::Descriptor* take(ViQueue& queue) {
        queue::Taken taken;
        return queue.work.take(taken) ? taken.descriptor : nullptr;
    }
    void take_all() {
        while (take(vi_.send) != nullptr || take(vi_.receive) != nullptr) {
        }
    }

private:
    struct Free {
        void operator()(void* pointer) const { std::free(pointer); }
    };
    static constexpr std::size_t descriptors_max = 64;
    static std::byte pattern(unsigned seed, std::size_t n) {
        return static_cast<std::byte>(seed * 31 + n * 7 + 1);
    }

    void post(ViQueue& queue, queue::Descriptor& descriptor, bool receive, bool ring) {
        queue::Descriptor copy = descriptor;
        const memory::Region region = side_.memory.look(handle_);
        const CheckContext context{side_.memory, region, vi_.attributes.tag,
                                   vi_.attributes.transfer_length_max, vi_.reliable()};
        const std::uint32_t fault =
            receive ? check_receive(context, copy.control, copy.segments, copy.control.length)
                    : check_send(context, copy.control, copy.segments);
        if (receive && fault != 0) vi_.receive_faults.fetch_add(1);
        ASSERT_EQ(queue.work.post(&descriptor, handle_, copy.control, copy.segments, fault, 1024),
                  Status::success);
        if (ring) side_.engine.on_doorbell(vi_);
    }

    Side& side_;
    Vi& vi_;
    std::unique_ptr<std::byte, Free> memory_;
    std::unique_ptr<queue::Descriptor, Free> descriptors_;
    memory::MemoryHandle handle_ = 0;
    std::size_t made_ = 0;
};

/// Connects `client` (on pair.a) with `server` (on pair.b).
/// `carry()` carries all that both sides want to send.
template <class Carry>
void connect_by(Pair& pair, Program& client, Program& server, Carry carry) {
    Listener listener;
    listener.discriminator = word("ear");
    pair.b.engine.requests().listen(listener);
    NetAddress remote;
    remote.discriminator = word("ear");
    ASSERT_EQ(pair.a.engine.connecting().begin_connect(client.vi(), {}, remote, Time::never()),
              Status::success);
    pair.a.engine.connecting().connect_on(client.vi(), the_path);
    carry();
    ASSERT_TRUE(listener.given.load());
    ASSERT_EQ(pair.b.engine.accept(listener.connection, server.vi()), Status::success);
    carry();
    ASSERT_EQ(client.state(), ViState::connected);
    ASSERT_EQ(server.state(), ViState::connected);
}

inline void connect(Pair& pair, Program& client, Program& server) {
    connect_by(pair, client, server, [&] { pair.carry(); });
}

/// Status bits in words, for messages of failed tests.
inline std::uint32_t status_of(const queue::Descriptor& descriptor) {
    return descriptor.control.status;
}

constexpr std::uint32_t send_done = queue::status::done | queue::status::operation_send;
constexpr std::uint32_t send_flushed = send_done | queue::status::flushed;
constexpr std::uint32_t receive_done = queue::status::done | queue::status::operation_receive;
constexpr std::uint32_t receive_flushed = receive_done | queue::status::flushed;
constexpr std::uint32_t write_done = queue::status::done | queue::status::operation_rdma_write;
constexpr std::uint32_t read_done = queue::status::done | queue::status::operation_rdma_read;
constexpr std::uint32_t swap_done = queue::status::done | queue::status::operation_compare_swap;
constexpr std::uint32_t add_done = queue::status::done | queue::status::operation_fetch_add;

}  // namespace via::engine::test
