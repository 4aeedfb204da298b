// ScaMPI and MPI/Pro, as far as 003 ("Comparing MPI Performance of SCI and VIA" section III) tells
// what they do. What their code takes by itself (matching, lists) no paper counts, nor do we.
#include <algorithm>

#include "lab/study/passing.hpp"

namespace via::lab::study {
namespace {

constexpr std::int64_t envelope = 32;              // tag, communicator, length, kind
constexpr std::int64_t transport_piece = 1 << 16;  // half of ScaMPI's buffer: assumed

/// Up to 560 B: payload and envelope.
using InLine = StoredWhole<envelope>;

/// Up to 128 KB: into a buffer of the receiver, and copied out of it.
class Eager final : public Protocol {
public:
    using Protocol::Protocol;
    Task<> send(NodeId from, std::int64_t size) override {
        co_await ground_.prepare(from);
        co_await ground_.store(from, size);
        co_await ground_.tell(from, Flag::used);
    }
    Task<> receive(NodeId at, std::int64_t size) override {
        co_await ground_.wait_for(at, Flag::used);
        co_await ground_.copy(at, size);
    }
};

/// Above: when the receiver is there, through its buffer, of which one half is filled while it
/// copies out of the other.
class Transport final : public Protocol {
public:
    using Protocol::Protocol;
    Task<> send(NodeId from, std::int64_t size) override {
        co_await ground_.prepare(from);
        co_await ground_.store_marked(from, envelope);
        co_await ground_.wait_for(from, Flag::ready);
        const std::int64_t pieces = (size + transport_piece - 1) / transport_piece;
        for (std::int64_t n = 0; n < pieces; ++n) {
            if (n >= 2) co_await ground_.wait_for(from, Flag::freed);
            co_await ground_.store(from, std::min(transport_piece, size - n * transport_piece));
            co_await ground_.tell(from, Flag::posted);
        }
        for (std::int64_t n = 0; n < std::min<std::int64_t>(pieces, 2); ++n)
            co_await ground_.wait_for(from, Flag::freed);
    }
    Task<> receive(NodeId at, std::int64_t size) override {
        co_await ground_.wait_for(at, Flag::used);
        co_await ground_.tell(at, Flag::ready);
        for (std::int64_t done = 0; done < size; done += transport_piece) {
            co_await ground_.wait_for(at, Flag::posted);
            co_await ground_.copy(at, std::min(transport_piece, size - done));
            co_await ground_.tell(at, Flag::freed);
        }
    }
};

/// MPI/Pro has a thread that sleeps until a descriptor is done, and gives what came to the
/// program's.
class ProEager : public Protocol {
public:
    using Protocol::Protocol;
    Task<> begin(NodeId at, std::int64_t size) override {
        for (int n = 0; n < receives; ++n) co_await ground_.post_receive(at, envelope + size);
    }
    Task<> send(NodeId from, std::int64_t size) override {
        return ground_.post(from, envelope + size);
    }
    Task<> receive(NodeId at, std::int64_t size) override {
        co_await come(at, envelope + size);
        co_await ground_.copy(at, size);
    }

protected:
    Task<> come(NodeId at, std::int64_t room) {
        co_await ground_.receive(at);
        co_await ground_.post_receive(at, room);
        co_await ground_.hand_over(at);
    }
    static constexpr int receives = 8;
};

/// The receiver registers its buffer, says where it is, and gets it by RDMA.
class ProLong final : public ProEager {
public:
    using ProEager::ProEager;
    Task<> begin(NodeId at, std::int64_t) override {
        for (int n = 0; n < receives; ++n) co_await ground_.post_receive(at, envelope);
    }
    Task<> send(NodeId from, std::int64_t size) override {
        co_await ground_.post(from, envelope);
        co_await come(from, envelope);
        co_await ground_.write(from, size, true);
    }
    Task<> receive(NodeId at, std::int64_t size) override {
        co_await come(at, envelope);
        co_await ground_.enlist(at, size);
        co_await ground_.post(at, envelope);
        co_await come(at, envelope);
        co_await ground_.release(at, size);
    }
};

/// Over TCP the kernel copies, and what came is read to where it belongs.
class ProTcp final : public ProEager {
public:
    using ProEager::ProEager;
    Task<> receive(NodeId at, std::int64_t size) override { return come(at, envelope + size); }
};

constexpr Way way_in_line{"in-line", "up to 560 B", make_protocol<InLine>};
constexpr Way way_eager{"eager", "up to 128 KB", make_protocol<Eager>};
constexpr Way way_transport{"transport", "above 128 KB", make_protocol<Transport>};
constexpr Way way_pro_eager{"eager", "up to 4 KB", make_protocol<ProEager>};
constexpr Way way_pro_long{"long", "above 4 KB", make_protocol<ProLong>};
constexpr Way way_pro_tcp{"TCP", "all lengths", make_protocol<ProTcp>};

}  // namespace

const Way& scampi_inline() { return way_in_line; }
const Way& scampi_eager() { return way_eager; }
const Way& scampi_transport() { return way_transport; }
const Way& mpipro_eager() { return way_pro_eager; }
const Way& mpipro_long() { return way_pro_long; }
const Way& mpipro_tcp() { return way_pro_tcp; }

}  // namespace via::lab::study
