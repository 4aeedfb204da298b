#include "bench/via_operations.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <via/via.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "bench/clock.hpp"
#include "bench/cpus.hpp"
#include "bench/pair.hpp"
#include "bench/session.hpp"
#include "bench/stopwatch.hpp"
#include "bench/via_connect.hpp"

namespace via::bench {

namespace {

constexpr int fast_calls = 64;  // of each operation in a round
constexpr int slow_calls = 16;
constexpr int open_calls = 4;
constexpr VIP_ULONG cq_entries = 256;
constexpr VIP_UINT32 message_bytes = 8;
constexpr int round_timeout_ms = 60'000;

static_assert(fast_calls <= CallTimes::most_calls);

// Where the timed process writes what its parent reads.
struct Board {
    static constexpr std::size_t most_timed = 64;
    std::array<CallTimes, most_timed> times;
};

// What both processes have: a NIC and three VIs connected to the other's, one of them with a
// completion queue and one to connect and disconnect.
class OperationsEndpoint final : public Endpoint {
public:
    OperationsEndpoint(Link& link, const OperationsPlan& plan, const std::vector<Timed>& all,
                       Board& board, std::string discriminator)
        : link_(link),
          plan_(plan),
          watch_(board.times, all),
          discriminator_(std::move(discriminator)) {}
    ~OperationsEndpoint() override {
        link_.shared().closing.value.store(1);
        if (nic_ == nullptr) return;
        for (const VIP_VI_HANDLE vi : {plain_, queued_, spare_}) {
            if (vi != nullptr) VipDisconnect(vi);
        }
        VipCloseNic(nic_);
    }

    Status open() override;
    Result<Reading> measure(const Question&, const Effort&) override;

private:
    struct Room {
        alignas(64) VIP_DESCRIPTOR out;
        alignas(64) VIP_DESCRIPTOR in;
        alignas(64) std::byte payload[2][message_bytes];
    };

    // One step of a round on both sides; what fails says so in failure_.
    bool alone();
    bool nics();
    bool registering();
    bool windows();
    bool queues_and_vis();
    bool connecting();
    bool sending();
    bool receiving();
    bool through_queue();
    bool notifying();

    bool ok(VIP_RETURN code, const char* call) {
        if (code == VIP_SUCCESS) return true;
        if (failure_.empty()) failure_ = fmt::format("{} returned {}", call, name_of_return(code));
        return false;
    }
    bool meet() { return link_.meet(); }
    void fill(VIP_DESCRIPTOR& descriptor, std::size_t which) {
        std::memset(static_cast<void*>(&descriptor), 0, sizeof descriptor);
        descriptor.CS.SegCount = 1;
        descriptor.CS.Length = message_bytes;
        descriptor.DS[0].Local.Data.Address = room_->payload[which];
        descriptor.DS[0].Local.Handle = memory_;
        descriptor.DS[0].Local.Length = message_bytes;
    }
    VIP_RETURN post_send(VIP_VI_HANDLE vi) { return VipPostSend(vi, &room_->out, memory_); }
    VIP_RETURN post_receive(VIP_VI_HANDLE vi) { return VipPostRecv(vi, &room_->in, memory_); }

    // One look after the other, the last of which finds something and is the one that is timed.
    template <class Look>
    bool until_done(Timed timed, Look&& look, const char* call) {
        VIP_RETURN code = VIP_NOT_DONE;
        for (;;) {
            code = watch_.fast(timed, look);
            if (code != VIP_NOT_DONE) return ok(code, call);
            watch_.take_back(timed);
        }
    }
    // The same untimed.
    template <class Look>
    bool until_done(Look&& look, const char* call) {
        VIP_RETURN code = VIP_NOT_DONE;
        while (code == VIP_NOT_DONE) code = look();
        return ok(code, call);
    }
    bool take_receive(VIP_VI_HANDLE vi) {
        VIP_DESCRIPTOR* descriptor = nullptr;
        const auto look = [&] { return VipRecvDone(vi, &descriptor); };
        if (!until_done(look, "VipRecvDone")) return false;
        look();  // and what is to be said to the sender is said
        return true;
    }
    // The other side's half of a message that comes.
    bool take_one(VIP_VI_HANDLE vi) {
        return ok(post_receive(vi), "VipPostRecv") && meet() && take_receive(vi) && meet();
    }
    static void on_done(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*);

    Link& link_;
    const OperationsPlan& plan_;
    Stopwatch watch_;
    std::string discriminator_;
    std::string failure_;
    VIP_NIC_HANDLE nic_ = nullptr;
    VIP_VI_ATTRIBUTES attributes_{};
    Room* room_ = nullptr;
    VIP_MEM_HANDLE memory_ = 0;
    VIP_CQ_HANDLE cq_ = nullptr;
    VIP_VI_HANDLE plain_ = nullptr;
    VIP_VI_HANDLE queued_ = nullptr;
    VIP_VI_HANDLE spare_ = nullptr;
    std::atomic<std::uint64_t> handled_ticks_{0};
};

Status OperationsEndpoint::open() {
    auto opened = open_nic(plan_.device, plan_.places, link_);
    if (!opened) return std::unexpected(opened.error());
    nic_ = *opened;
    // The other side parts again and again: that is no news.
    VipErrorCallback(nic_, nullptr, [](VIP_PVOID, VIP_ERROR_DESCRIPTOR*) {});
    room_ = new (link_.arena.base) Room{};
    const auto made = [&] {
        VIP_MEM_ATTRIBUTES rights{nullptr, VIP_TRUE, VIP_TRUE};
        VIP_NIC_ATTRIBUTES nic{};
        if (!ok(VipRegisterMem(nic_, room_, sizeof *room_, &rights, &memory_), "VipRegisterMem") ||
            !ok(VipQueryNic(nic_, &nic), "VipQueryNic") ||
            !ok(VipCreateCQ(nic_, cq_entries, &cq_), "VipCreateCQ")) {
            return false;
        }
        attributes_.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
        attributes_.MaxTransferSize = nic.MaxTransferSize;
        attributes_.EnableRdmaWrite = attributes_.EnableRdmaRead = VIP_TRUE;
        return ok(VipCreateVi(nic_, &attributes_, nullptr, nullptr, &plain_), "VipCreateVi") &&
               ok(VipCreateVi(nic_, &attributes_, cq_, cq_, &queued_), "VipCreateVi") &&
               ok(VipCreateVi(nic_, &attributes_, nullptr, nullptr, &spare_), "VipCreateVi");
    }();
    if (!made) return fail("{}", failure_);
    fill(room_->out, 0);
    fill(room_->in, 1);
    if (!link_.meet()) return fail("{}", called_off);
    for (const VIP_VI_HANDLE vi : {plain_, queued_}) {
        auto connected = link_.is_first() ? request_one(vi, link_, discriminator_)
                                          : accept_one(nic_, vi, link_, discriminator_);
        if (!connected) return connected;
    }
    return link_.meet() ? Status{} : fail("{}", called_off);
}

Result<Reading> OperationsEndpoint::measure(const Question&, const Effort&) {
    // Only the first side times, and writes on the board.
    if (link_.is_first()) watch_.start();
    const bool good = meet() && alone() && connecting() && sending() && receiving() &&
                      through_queue() && notifying();
    if (link_.is_first()) watch_.stop();
    if (good) return Reading{};
    if (!failure_.empty()) return fail("{}", failure_);
    return fail("{}", called_off);
}

// What needs no peer.
bool OperationsEndpoint::alone() {
    if (!link_.is_first()) return meet();
    for (int i = 0; i < fast_calls; ++i) {
        watch_.fast({Operation::null_call, 0}, [] { return ::syscall(SYS_getppid); });
    }
    return nics() && registering() && windows() && queues_and_vis() && meet();
}

bool OperationsEndpoint::nics() {
    const std::string name = nic_name(plan_.device, plan_.places, link_.own());
    for (int i = 0; i < open_calls; ++i) {
        VIP_NIC_HANDLE nic = nullptr;
        const auto open = [&] { return VipOpenNic(name.c_str(), &nic); };
        const auto close = [&] { return VipCloseNic(nic); };
        if (!ok(watch_.slow({Operation::open_nic, 0}, open), "VipOpenNic")) return false;
        if (!ok(watch_.slow({Operation::close_nic, 0}, close), "VipCloseNic")) return false;
    }
    return true;
}

// Pages that are in memory; what fresh ones cost `via bench register` tells.
bool OperationsEndpoint::registering() {
    std::byte* const base = link_.arena.base + 4096;
    for (const std::uint64_t size : plan_.sizes) {
        for (int i = 0; i < slow_calls; ++i) {
            VIP_MEM_HANDLE handle = 0;
            const auto add = [&] { return VipRegisterMem(nic_, base, size, nullptr, &handle); };
            const auto end = [&] { return VipDeregisterMem(nic_, base, handle); };
            if (!ok(watch_.slow({Operation::register_memory, size}, add), "VipRegisterMem") ||
                !ok(watch_.slow({Operation::deregister_memory, size}, end), "VipDeregisterMem")) {
                return false;
            }
        }
    }
    return true;
}

bool OperationsEndpoint::windows() {
    VIA_WINDOW_ATTRIBUTES rights{};
    rights.EnableRdmaWrite = VIP_TRUE;
    for (int i = 0; i < fast_calls; ++i) {
        VIP_MEM_HANDLE window = 0;
        const auto bind = [&] {
            return ViaBindWindow(nic_, room_, sizeof *room_, memory_, &rights, &window);
        };
        const auto revoke = [&] { return ViaRevokeWindow(nic_, window); };
        if (!ok(watch_.fast({Operation::bind_window, 0}, bind), "ViaBindWindow") ||
            !ok(watch_.fast({Operation::revoke_window, 0}, revoke), "ViaRevokeWindow")) {
            return false;
        }
    }
    return true;
}

bool OperationsEndpoint::queues_and_vis() {
    for (int i = 0; i < slow_calls; ++i) {
        VIP_CQ_HANDLE cq = nullptr;
        VIP_VI_HANDLE vi = nullptr;
        const auto make_cq = [&] { return VipCreateCQ(nic_, cq_entries, &cq); };
        const auto end_cq = [&] { return VipDestroyCQ(cq); };
        const auto make_vi = [&] { return VipCreateVi(nic_, &attributes_, nullptr, nullptr, &vi); };
        const auto end_vi = [&] { return VipDestroyVi(vi); };
        if (!ok(watch_.slow({Operation::create_cq, 0}, make_cq), "VipCreateCQ") ||
            !ok(watch_.slow({Operation::destroy_cq, 0}, end_cq), "VipDestroyCQ") ||
            !ok(watch_.slow({Operation::create_vi, 0}, make_vi), "VipCreateVi") ||
            !ok(watch_.slow({Operation::destroy_vi, 0}, end_vi), "VipDestroyVi")) {
            return false;
        }
    }
    return true;
}

// From the request that meets somebody who waits to the answer; disconnecting first is timed.
bool OperationsEndpoint::connecting() {
    for (int i = 0; i < slow_calls; ++i) {
        if (!link_.is_first()) {
            if (auto accepted = accept_one(nic_, spare_, link_, discriminator_); !accepted) {
                failure_ = accepted.error().what;
                return false;
            }
        } else {
            NetAddress here(link_.mine(), discriminator_);
            NetAddress there(link_.theirs(), discriminator_);
            const Timed connect{Operation::connect, 0};
            const std::int64_t deadline_ns = now_ns() + connect_timeout_ns;
            VIP_RETURN code = VIP_NO_MATCH;
            while (code == VIP_NO_MATCH && now_ns() < deadline_ns) {
                code = watch_.slow(connect, [&] {
                    VIP_VI_ATTRIBUTES theirs{};
                    return VipConnectRequest(spare_, here.get(), there.get(), connect_timeout_ms,
                                             &theirs);
                });
                if (code == VIP_NO_MATCH) watch_.take_back_slow(connect);
            }
            const auto part = [&] { return VipDisconnect(spare_); };
            if (!ok(code, "VipConnectRequest") ||
                !ok(watch_.slow({Operation::disconnect, 0}, part), "VipDisconnect")) {
                return false;
            }
        }
        if (!meet()) return false;
        if (!link_.is_first() && !ok(VipDisconnect(spare_), "VipDisconnect")) return false;
    }
    return true;
}

bool OperationsEndpoint::sending() {
    for (int i = 0; i < fast_calls; ++i) {
        if (!link_.is_first()) {
            if (!take_one(plain_)) return false;
            continue;
        }
        if (!meet()) return false;
        VIP_DESCRIPTOR* descriptor = nullptr;
        const auto look = [&] { return VipSendDone(plain_, &descriptor); };
        watch_.fast({Operation::send_done_empty, 0}, look);
        if (!ok(watch_.fast({Operation::post_send, 0}, [&] { return post_send(plain_); }),
                "VipPostSend") ||
            !until_done({Operation::send_done, 0}, look, "VipSendDone") || !meet()) {
            return false;
        }
    }
    return true;
}

bool OperationsEndpoint::receiving() {
    for (int i = 0; i < fast_calls; ++i) {
        VIP_DESCRIPTOR* descriptor = nullptr;
        if (!link_.is_first()) {
            const auto look = [&] { return VipSendDone(plain_, &descriptor); };
            if (!meet() || !ok(post_send(plain_), "VipPostSend") || !meet() ||
                !until_done(look, "VipSendDone") || !meet()) {
                return false;
            }
            continue;
        }
        const auto look = [&] { return VipRecvDone(plain_, &descriptor); };
        const auto post = [&] { return post_receive(plain_); };
        if (!ok(watch_.fast({Operation::post_receive, 0}, post), "VipPostRecv")) return false;
        watch_.fast({Operation::receive_done_empty, 0}, look);
        if (!meet() || !meet() || !until_done({Operation::receive_done, 0}, look, "VipRecvDone")) {
            return false;
        }
        look();
        if (!meet()) return false;
    }
    return true;
}

bool OperationsEndpoint::through_queue() {
    for (int i = 0; i < fast_calls; ++i) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN is_receive = VIP_FALSE;
        VIP_DESCRIPTOR* descriptor = nullptr;
        const auto look = [&] { return VipCQDone(cq_, &vi, &is_receive); };
        if (!link_.is_first()) {
            if (!ok(post_receive(queued_), "VipPostRecv") || !meet() ||
                !until_done(look, "VipCQDone") ||
                !ok(VipRecvDone(vi, &descriptor), "VipRecvDone")) {
                return false;
            }
            look();
            if (!meet()) return false;
            continue;
        }
        if (!meet()) return false;
        watch_.fast({Operation::cq_done_empty, 0}, look);
        if (!ok(post_send(queued_), "VipPostSend") ||
            !until_done({Operation::cq_done, 0}, look, "VipCQDone") ||
            !ok(VipSendDone(vi, &descriptor), "VipSendDone") || !meet()) {
            return false;
        }
    }
    return true;
}

void OperationsEndpoint::on_done(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE,
                                 VIP_DESCRIPTOR*) {
    auto* endpoint = static_cast<OperationsEndpoint*>(context);
    endpoint->handled_ticks_.store(ticks(), std::memory_order_release);
    endpoint->handled_ticks_.notify_one();
}

// Of a send that is done already: the handler runs at once, on a thread of the library.
bool OperationsEndpoint::notifying() {
    for (int i = 0; i < slow_calls; ++i) {
        if (!link_.is_first()) {
            if (!take_one(plain_)) return false;
            continue;
        }
        handled_ticks_.store(0, std::memory_order_relaxed);
        if (!meet() || !ok(post_send(plain_), "VipPostSend")) return false;
        while ((__atomic_load_n(&room_->out.CS.Status, __ATOMIC_ACQUIRE) & VIP_STATUS_DONE) == 0) {
            relax();
        }
        const std::uint64_t before = ticks();
        if (!ok(watch_.fast({Operation::notify, 0},
                            [&] { return VipSendNotify(plain_, this, on_done); }),
                "VipSendNotify")) {
            return false;
        }
        handled_ticks_.wait(0, std::memory_order_acquire);
        watch_.add({Operation::notified, 0}, handled_ticks_.load() - before);
        if (!meet()) return false;
    }
    return true;
}

class OperationsChannel final : public Channel {
public:
    OperationsChannel(const OperationsPlan& plan, const std::vector<Timed>& all,
                      const SharedMap& board)
        : Channel(plan.device),
          plan_(plan),
          all_(all),
          board_(*reinterpret_cast<Board*>(board.base())) {}

    Question adapt(const Question& question) const override { return question; }
    std::string refuses(const Question&) const override { return {}; }
    Status prepare(std::uint64_t) override { return {}; }
    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        return std::make_unique<OperationsEndpoint>(
            link, plan_, all_, board_, fmt::format("via-bench-operations-{}", ::getppid()));
    }

private:
    const OperationsPlan& plan_;
    const std::vector<Timed>& all_;
    Board& board_;
};

}  // namespace

Result<OperationResult> measure_operations(const OperationsPlan& plan) {
    const std::vector<Timed> all = all_timed(plan.sizes);
    if (all.size() > Board::most_timed) return fail("too many sizes");
    SharedMap map;
    if (auto made = map.create(sizeof(Board)); !made) return std::unexpected(made.error());
    const auto& board = *new (map.base()) Board;
    PairSetup setup;
    setup.cpus = plan.cpus;
    setup.processors = online_processors();
    setup.places = plan.places;
    setup.arena_bytes = 4096 + *std::max_element(plan.sizes.begin(), plan.sizes.end());
    auto pair = Pair::start(std::make_unique<OperationsChannel>(plan, all, map), setup);
    if (!pair) return std::unexpected(pair.error());

    std::vector<OperationSeries> series;
    for (const Timed& timed : all) series.push_back({timed, {}, 0});
    OperationResult result;
    ModeLimits limits;
    limits.keep_disturbed = plan.keep_disturbed;
    const std::int64_t deadline_ns = now_ns() + std::int64_t{plan.max_seconds} * 1'000'000'000;
    // One more, of which nothing counts, to warm up.
    for (std::uint32_t turn = 0; turn <= plan.rounds * tries_per_round; ++turn) {
        if (result.rounds == plan.rounds || now_ns() > deadline_ns) break;
        auto raw = (*pair)->ask({}, {}, round_timeout_ms);
        if (!raw) return std::unexpected(raw.error());
        if (turn == 0) continue;
        // How far away the other process is matters to few of these calls. Both sleep now and then,
        // so waiting for a processor is judged as of those who block; and a NIC that is opened
        // starts threads on the processor of whoever opens it, so switches tell nothing.
        for (Disturbance& side : raw->disturbances) side.involuntary = 0;
        if (judge_remote(raw->disturbances, Wait::block, limits).drop != Drop::none) {
            ++result.dropped;
            continue;
        }
        ++result.rounds;
        for (std::size_t i = 0; i < all.size(); ++i) add_round(series[i], board.times[i]);
    }
    result.rows = rows_of(series);
    return result;
}

}  // namespace via::bench
