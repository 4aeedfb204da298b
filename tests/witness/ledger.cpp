#include "ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "sim/checker.hpp"
#include "wire/packet.hpp"

namespace via::witness {

namespace {

std::uint64_t mixed(std::uint64_t digest, std::uint64_t value) {
    digest = (digest ^ value) * 0x9E3779B97F4A7C15U;
    return digest ^ digest >> 29;
}

/// Of the first `length` bytes of its segments.
std::uint32_t checksum(const VIP_DESCRIPTOR& descriptor, std::uint64_t length) {
    std::uint32_t sum = 0;
    const VIP_DESCRIPTOR_SEGMENT* segments = descriptor.DS;
    for (unsigned n = 0; n < descriptor.CS.SegCount && length != 0; ++n) {
        const VIP_DATA_SEGMENT& segment = segments[n].Local;
        const std::uint64_t part = std::min<std::uint64_t>(segment.Length, length);
        sum = wire::crc32c(sum, {static_cast<const std::byte*>(segment.Data.Address), part});
        length -= part;
    }
    return sum;
}

std::uint64_t digest_of(bool by_write, std::uint32_t length, std::uint32_t sum, bool immediate,
                        std::uint32_t data) {
    std::uint64_t digest = mixed(by_write ? 2 : 1, length);
    digest = mixed(digest, sum);
    return mixed(digest, immediate ? data + (std::uint64_t{1} << 32) : 0);
}

}  // namespace

void Chain::add(std::uint64_t digest) {
    const std::uint64_t all = mixed(count_ == 0 ? 0 : this->digest(), digest);
    last_[++count_ % kept] = all;
}

void Ledger::tell(const sim::Happening& what) { completions_.observe({{}, what}); }

void Ledger::made(VIP_VI_HANDLE handle, VIP_RELIABILITY_LEVEL level) {
    const std::lock_guard guard(lock_);
    Vi& vi = vis_[handle];
    vi.number = ++vis_made_;
    vi.level = level;
}

Ledger::Vi* Ledger::find(VIP_VI_HANDLE handle) {
    const std::lock_guard guard(lock_);
    const auto found = vis_.find(handle);
    return found == vis_.end() ? nullptr : &found->second;
}

void Ledger::connecting(Vi& vi) {
    const std::lock_guard guard(lock_);
    write_down(vi);
    vi.sent = vi.received = {};
}

void Ledger::destroyed(VIP_VI_HANDLE handle) {
    const std::lock_guard guard(lock_);
    const auto found = vis_.find(handle);
    if (found == vis_.end()) return;
    write_down(found->second);
    vis_.erase(found);
}

Ledger::Intent Ledger::intent(const VIP_DESCRIPTOR& descriptor, bool receive) {
    Intent intent;
    if (receive) return intent;
    const bool immediate = (descriptor.CS.Control & VIP_CONTROL_IMMEDIATE) != 0;
    switch (descriptor.CS.Control & VIP_CONTROL_OP_MASK) {
        case VIP_CONTROL_OP_RDMAREAD:
            intent.operation = VIP_STATUS_OP_RDMA_READ;
            return intent;
        case VIP_CONTROL_OP_RDMAWRITE:
            intent.operation = VIP_STATUS_OP_RDMA_WRITE;
            intent.message = immediate;
            intent.digest =
                digest_of(true, descriptor.CS.Length, 0, immediate, descriptor.CS.ImmediateData);
            return intent;
        default:
            intent.operation = VIP_STATUS_OP_SEND;
            intent.message = true;
            intent.digest =
                digest_of(false, descriptor.CS.Length, checksum(descriptor, descriptor.CS.Length),
                          immediate, descriptor.CS.ImmediateData);
            return intent;
    }
}

void Ledger::posted(Vi& vi, bool receive, VIP_DESCRIPTOR* descriptor, const Intent& intent) {
    const std::lock_guard guard(lock_);
    const sim::WorkNumber work = ++works_;
    vi.posted[receive].push_back({descriptor, work});
    const auto level = vi.level == VIP_SERVICE_UNRELIABLE          ? sim::Reliability::unreliable
                       : vi.level == VIP_SERVICE_RELIABLE_DELIVERY ? sim::Reliability::delivery
                                                                   : sim::Reliability::reception;
    tell(
        sim::Posted{work, vi.number, receive, intent.operation, 0, sim::ViState::connected, level});
    if (intent.message) vi.sent.add(intent.digest);
}

void Ledger::given_back(Vi& vi, bool receive, VIP_DESCRIPTOR* descriptor) {
    const std::lock_guard guard(lock_);
    ++given_back_;
    std::deque<Posted>& posted = vi.posted[receive];
    const auto found = std::ranges::find(posted, descriptor, &Posted::descriptor);
    // One that was never posted has no number: the checker says so.
    const sim::WorkNumber work = found == posted.end() ? ~sim::WorkNumber{0} : found->work;
    if (found != posted.end()) posted.erase(found);
    const std::uint32_t status = descriptor->CS.Status;
    tell(sim::Completed{work, status, true});
    tell(sim::Taken{work});
    if (!receive || (status & VIP_STATUS_ERROR_MASK) != 0) return;
    const bool by_write = (status & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_REMOTE_RDMA_WRITE;
    const std::uint32_t length = descriptor->CS.Length;
    vi.received.add(digest_of(by_write, length, by_write ? 0 : checksum(*descriptor, length),
                              (status & VIP_STATUS_IMMEDIATE) != 0, descriptor->CS.ImmediateData));
}

/// Unreliable messages may be lost: nothing is to be compared.
void Ledger::write_down(const Vi& vi) {
    if (vi.level == VIP_SERVICE_UNRELIABLE) return;
    if (vi.sent.count() != 0) {
        lines_ += fmt::format("sent {}", vi.sent.count());
        const std::uint64_t shown = std::min<std::uint64_t>(vi.sent.count(), Chain::kept);
        for (std::uint64_t back = 0; back < shown; ++back)
            lines_ += fmt::format(" {:x}", vi.sent.digest(back));
        lines_ += '\n';
    }
    if (vi.received.count() != 0)
        lines_ += fmt::format("received {} {:x}\n", vi.received.count(), vi.received.digest());
}

void Ledger::write() {
    const std::lock_guard guard(lock_);
    for (const auto& [handle, vi] : vis_) write_down(vi);
    vis_.clear();
    if (!completions_.violation().empty()) lines_ += "violation " + completions_.violation() + '\n';
    if (works_ == 0) return;
    std::ofstream file(path_);
    file << lines_ << "given back " << given_back_ << " of " << works_ << '\n';
    if (!file.flush()) fmt::print(stderr, "witness: {} cannot be written\n", path_);
}

}  // namespace via::witness
