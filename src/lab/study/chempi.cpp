// CHEMPI's three protocols (003, "An optimized MPI library for VIA/SCI cards" section 5). Each
// message has a message info_bytes struct in the receiver's memory, and words that say that it is
// used and that the message was taken.
#include <algorithm>

#include "lab/study/passing.hpp"

namespace via::lab::study {
namespace {

constexpr std::int64_t info_bytes = 24;  // tag, communicator, message, type, two of the protocol's
constexpr std::int64_t chunk_bytes = 4096;  // M: the paper leaves it open

/// 5.3: copied by stores, and out of the shared memory.
class Shared final : public Protocol {
public:
    using Protocol::Protocol;
    Task<> send(NodeId from, std::int64_t size) override {
        co_await ground_.prepare(from);
        co_await ground_.store(from, size);
        co_await ground_.store(from, info_bytes);
        co_await ground_.tell(from, Flag::used);
        co_await ground_.wait_for(from, Flag::ready);
    }
    Task<> receive(NodeId at, std::int64_t size) override {
        co_await ground_.wait_for(at, Flag::used);
        co_await ground_.copy(at, size);
        co_await ground_.tell(at, Flag::ready);
    }
};

/// 5.4: sent by descriptors to receives that are there, each of a chunk_bytes, and copied out of
/// them.
class OneCopy final : public Protocol {
public:
    using Protocol::Protocol;
    Task<> begin(NodeId at, std::int64_t size) override {
        for (std::int64_t n = 0; n < 2 * chunks(size); ++n)
            co_await ground_.post_receive(at, chunk_bytes);
    }
    Task<> send(NodeId from, std::int64_t size) override {
        co_await ground_.prepare(from);
        co_await ground_.enlist(from, size);
        co_await ground_.store(from, info_bytes);
        for (std::int64_t n = 0; n < chunks(size); ++n) co_await ground_.post(from, part(size, n));
        co_await ground_.tell(from, Flag::used);
        co_await ground_.wait_for(from, Flag::ready);
        co_await ground_.release(from, size);
    }
    Task<> receive(NodeId at, std::int64_t size) override {
        co_await ground_.wait_for(at, Flag::used);
        for (std::int64_t n = 0; n < chunks(size); ++n) {
            co_await ground_.receive(at);
            co_await ground_.copy(at, part(size, n));
        }
        co_await ground_.tell(at, Flag::ready);
        for (std::int64_t n = 0; n < chunks(size); ++n)
            co_await ground_.post_receive(at, chunk_bytes);
        co_await ground_.tell(at, Flag::posted);
    }

private:
    static std::int64_t chunks(std::int64_t size) {
        return size == 0 ? 1 : (size + chunk_bytes - 1) / chunk_bytes;
    }
    static std::int64_t part(std::int64_t size, std::int64_t n) {
        return std::min(chunk_bytes, size - n * chunk_bytes);
    }
};

/// 5.5: sent by a descriptor to one that the receiver posts when it has found the message.
class ZeroCopy final : public Protocol {
public:
    using Protocol::Protocol;
    Task<> send(NodeId from, std::int64_t size) override {
        co_await ground_.prepare(from);
        co_await ground_.enlist(from, size);
        co_await ground_.store(from, info_bytes);
        co_await ground_.tell(from, Flag::used);
        co_await ground_.wait_for(from, Flag::posted);
        co_await ground_.post(from, size);
        co_await ground_.wait_for(from, Flag::ready);
        co_await ground_.release(from, size);
    }
    Task<> receive(NodeId at, std::int64_t size) override {
        co_await ground_.wait_for(at, Flag::used);
        co_await ground_.enlist(at, size);
        co_await ground_.post_receive(at, size);
        co_await ground_.tell(at, Flag::posted);
        co_await ground_.receive(at);
        co_await ground_.release(at, size);
        co_await ground_.tell(at, Flag::ready);
    }
};

constexpr Way all_chempi[] = {
    {"shared memory", "stores into the receiver's buffer, a copy out of it", make_protocol<Shared>},
    {"one copy", "descriptors of 4 KB to receives that are there, a copy out of them",
     make_protocol<OneCopy>},
    {"zero copy", "a descriptor, when the receiver has posted one for it", make_protocol<ZeroCopy>},
};

}  // namespace

std::span<const Way> chempi_ways() { return all_chempi; }

}  // namespace via::lab::study
