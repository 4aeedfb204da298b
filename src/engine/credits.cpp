#include "engine/credits.hpp"

#include "base/assert.hpp"

namespace via::engine {

namespace {

/// That the peer may tell of and we have not used: more would look like fewer.
constexpr std::uint32_t credits_max = 1U << 31;

}  // namespace

void Credits::begin(Vi& vi, const wire::ConnectMessage& message) {
    vi.credits.granted = vi.credits.taken = vi.credits.limit = vi.credits.used = 0;
    if (!vi.wants_credits || !vi.reliable() ||
        (message.features & wire::connect_feature::credits) == 0)
        return;
    vi.credits_agreed.store(true);
    // A post that did not see this is counted now.
    bool fenced = false;
    vi.receive.work.wait_for_posters(fenced);
    if (vi.shared != nullptr) {
        vi.shared->rings.store(&vi);
        vi.shared->work.wait_for_posters(fenced);
    }
    vi.receives_before = vi.receive.work.completed_count();
    grant(vi);
}

void Credits::end(Vi& vi) {
    vi.credits_agreed.store(false, std::memory_order_relaxed);
    vi.credit_due = false;
    shared_.forget(vi);
}

void Credits::grant(Vi& vi) {
    if (vi.shared != nullptr) [[unlikely]]
        shared_.fill(vi);
    const std::uint32_t posted = vi.receive.work.posted_count() - vi.receives_before;
    const std::uint32_t fresh = posted - vi.credits.granted;
    const std::uint32_t left = vi.credits.granted - vi.credits.taken;
    // Not for each receive: when the news are worth as much as what the peer has left.
    if (fresh == 0 || fresh < left) return;
    vi.credit_due = true;
    paths_.activate(vi);
}

void Credits::grant_waiting() {
    shared_.serve([this](Vi& vi) { grant(vi); });
}

void Credits::emit(Vi& vi, const FrameRoom& room) {
    const std::uint32_t posted = vi.receive.work.posted_count() - vi.receives_before;
    VIA_ASSERT(static_cast<std::int32_t>(posted - vi.credits.granted) >= 0);
    vi.credits.granted = posted;
    vi.credit_due = false;
    wire::Header header;
    header.kind = wire::FrameKind::credit;
    header.vi = vi.remote_number;
    header.message = vi.credits.granted;
    wire::emit(header, room.header);
}

bool Credits::take(Vi& vi, const wire::Header& header) {
    VIA_ASSERT(!vi.credits_agreed.load(std::memory_order_relaxed) ||
               vi.credits.limit - vi.credits.used <= credits_max);
    if (!vi.credits_agreed.load(std::memory_order_relaxed) ||
        header.message - vi.credits.limit > credits_max ||
        header.message - vi.credits.used > credits_max)
        return false;
    vi.credits.limit = header.message;
    if (vi.send.work.has_current()) paths_.activate(vi);
    return true;
}

}  // namespace via::engine
