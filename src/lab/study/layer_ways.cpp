// The three ways of the product's message layer (include/via, MessageChannel), on a machine of the
// laboratory: a ring in the peer's memory, a message of the VI, RDMA after a question.
#include "lab/study/passing.hpp"

namespace via::lab::study {
namespace {

constexpr std::int64_t ring_header = 16;
constexpr std::int64_t ring_answer = 32;  // a header, and where the receiver's bytes are

using Ring = StoredWhole<ring_header>;

/// Copied out of the receive's buffer.
class MessageOfVi final : public Protocol {
public:
    using Protocol::Protocol;
    Task<> begin(NodeId at, std::int64_t size) override {
        for (int n = 0; n < 2; ++n) co_await ground_.post_receive(at, ring_header + size);
    }
    Task<> send(NodeId from, std::int64_t size) override {
        return ground_.post(from, ring_header + size);
    }
    Task<> receive(NodeId at, std::int64_t size) override {
        co_await ground_.receive(at);
        co_await ground_.copy(at, size);
        co_await ground_.post_receive(at, ring_header + size);
    }
};

/// From the program's memory to the program's memory.
class Asked final : public Protocol {
public:
    using Protocol::Protocol;
    Task<> begin(NodeId at, std::int64_t) override {
        for (int n = 0; n < 2; ++n) co_await ground_.post_receive(at, 0);
    }
    Task<> send(NodeId from, std::int64_t size) override {
        co_await ground_.prepare(from);
        co_await ground_.store_marked(from, ring_header);
        co_await ground_.enlist(from, size);
        co_await ground_.wait_for(from, Flag::used);
        co_await ground_.write(from, size, true);
        co_await ground_.release(from, size);
    }
    Task<> receive(NodeId at, std::int64_t size) override {
        co_await ground_.wait_for(at, Flag::used);
        co_await ground_.enlist(at, size);
        co_await ground_.store_marked(at, ring_answer);
        co_await ground_.receive(at);
        co_await ground_.release(at, size);
        co_await ground_.post_receive(at, 0);
    }
};

constexpr Way all_layer[] = {
    {"ring", "stores into a ring of the receiver, a copy out of it", make_protocol<Ring>},
    {"message", "a message of the VI, a copy out of its buffer", make_protocol<MessageOfVi>},
    {"RDMA", "RDMA, when the receiver has said where to", make_protocol<Asked>},
};

}  // namespace

std::span<const Way> layer_ways() { return all_layer; }

}  // namespace via::lab::study
