#include "device/shm/channel.hpp"

#include <cerrno>
#include <climits>
#include <utility>

#include "device/shm/message.hpp"
#include "device/shm/wake.hpp"

namespace via::device::shm {

Channel::Channel(PathId own_path, Introduction introduction, OneCopy one_copy)
    : path(own_path),
      asymmetric((introduction.features & feature_asymmetric_fences) != 0),
      stores(introduction.own.layout().arena_bytes / 4),
      copies(one_copy),
      peer_info(std::move(introduction)),
      grants(peer_info.own.control().grants, grants_max) {
    const OwnMemory& own = peer_info.own;
    const PeerMemory& peer = peer_info.peer;
    own_ = &own.control();
    peer_ = &peer.control();
    shadow_.reset(new std::uint64_t[own.layout().ring_slots]);
    writer.attach(own.ring(), own.layout().ring_slots, own.arena(), own.layout().arena_bytes,
                  shadow_.get(), &peer_->head);
    reader.attach(peer.ring(), peer.layout().ring_slots, peer.arena(), peer.layout().arena_bytes,
                  &own_->head);
    mailbox.attach(peer_info.mailbox.line(), peer_info.mailbox.room(), !peer_info.accepted);
}

namespace {

/// Makes the peer's wait handle readable. True: it is, or the peer is gone.
bool send_wake_byte(System& system, int socket) {
    const std::byte byte{0};
    const int error = send_message(system, socket, {&byte, 1});
    // EAGAIN: full of wake-ups that it has not read yet.
    return error == 0 || error == EAGAIN || means_gone(error);
}

}  // namespace

bool Channel::wake(System& system, std::uint32_t word, std::uint32_t& calls) {
    const Sleep kind = sleep_kind(word);
    if (kind == Sleep::awake || word == woken_word_) return true;
    ++calls;
    if (kind == Sleep::on_words) {
        own_->wakes.store(++wakes_, memory_order_release);
        // One thread of the peer's sleeps for all; how many more it lets wait is not our time.
        if (system.futex_wake(&own_->wakes, 1) < 0) return false;
    } else if (!send_wake_byte(system, peer_info.socket.get())) {
        return false;
    }
    woken_word_ = word;
    return true;
}

WakeWord Channel::wake_word() {
    peer_decision();
    const std::uint32_t wakes = peer_load(peer_->wakes, memory_order_acquire);
    if (wakes != seen_wakes_) {
        seen_wakes_ = wakes;
        judge_wake();
    }
    return {&peer_->wakes, wakes};
}

void Channel::woken_by(const WakeWord& word) {
    // A change is found, and judged, when the next sleep begins.
    if (word.address == &peer_->wakes && word.expected == seen_wakes_ && !wake_changed())
        judge_wake();
}

bool Channel::wake_changed() const {
    peer_decision();
    return peer_load(peer_->wakes, memory_order_acquire) != seen_wakes_;
}

void Channel::judge_wake() {
    const std::uint32_t frames = frames_taken();
    const std::uint32_t room = writer.peer_head();
    const bool news = frames != seen_taken_ || room != seen_room_ || pending();
    seen_taken_ = frames;
    seen_room_ = room;
    if (!news) ++wakes_useless;
}

}  // namespace via::device::shm
