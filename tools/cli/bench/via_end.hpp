// One side of a device's channel. Data goes from buffer i modulo count to buffer i modulo count;
// the window of messages that may be under way is the number of buffers, and in a stream the
// receiver returns credits, empty messages on the first VI, as VIA programs do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/end.hpp"
#include "bench/via_port.hpp"

namespace via::bench {

inline constexpr std::uint64_t control_receives = 8;
inline constexpr std::uint64_t control_sends = 4;
inline constexpr std::uint64_t credits_per_window = 4;

// 0, 1, ... count - 1 and again, without a division.
class Turn {
public:
    explicit Turn(std::uint32_t count = 1, std::uint64_t first = 0)
        : count_(count), now_(static_cast<std::uint32_t>(first % count)) {}
    std::uint32_t now() const { return now_; }
    void pass() { now_ = now_ + 1 == count_ ? 0 : now_ + 1; }

private:
    std::uint32_t count_;
    std::uint32_t now_;
};

class ViaEnd : public End {
public:
    ViaEnd(Link& link, ViaPort& port) : End(link), port_(port) {}

    bool begin(const Question& question, std::uint64_t messages) {
        if (question.size > port_.max_transfer_bytes()) {
            return give_up("messages of {} bytes are more than the NIC's MaxTransferSize of {}",
                           question.size, port_.max_transfer_bytes());
        }
        if (!End::begin(question, messages)) return false;
        count_ = pools_.send.count;
        credit_step_ = std::max<std::uint64_t>(count_ / credits_per_window, 1);
        // Without a completion at the target, an RDMA write is seen by looking at memory.
        notified_ = question.op != Op::write || question.wait == Wait::block || is_verifying();
        posted_ = reaped_ = 0;
        control_expected_ = control_posted_ = control_taken_ = control_out_ = 0;
        arrived_.assign(count_, 0);
        const std::uint32_t vis = question.rotate_vis ? port_.vi_count() : 1;
        vi_to_post_ = vi_to_reap_ = vi_to_take_ = Turn(vis);
        vi_to_refill_ = Turn(vis, count_);
        lay_out_descriptors();
        return post_first_receives();
    }

    bool send(std::uint64_t i) {
        while (posted_ - reaped_ >= question_.depth) {
            if (!take(false, vi_to_reap_.now())) return false;
        }
        while (is_stream() && i - control_taken_ * credit_step_ >= count_) {
            if (!take(true, 0)) return false;
        }
        stamped(i);
        return post(i);
    }

    bool receive(std::uint64_t i) {
        if (notified_) {
            std::uint8_t& arrived = arrived_[slot_of(i)];
            while (arrived == 0) {
                if (!take(true, vi_to_take_.now())) return false;
            }
            arrived = 0;
            vi_to_take_.pass();
        } else {
            const Pool& pool = pools_.receive;
            // The NIC needs this processor to place what comes by frames, the peer's stores do not.
            const int looks = port_.exported() ? 1000 : 1;
            int left = looks;
            while (!tail_arrived(pool.at(i), question_.size, i, pool.count)) {
                if (--left > 0) continue;
                if (!take(true, 0)) return false;
                left = looks;
            }
        }
        if (!check(i)) return false;
        if (notified_ && i + count_ < messages_ && !refill(i)) return false;
        return !is_stream() || ((i + 1) & (credit_step_ - 1)) != 0 || send_control();
    }

    // All that was posted is taken back, on both sides.
    bool finish() {
        while (posted_ != reaped_) {
            if (!take(false, vi_to_reap_.now())) return false;
        }
        if (says_goodbye() && !send_control()) return false;
        while (control_taken_ < control_expected_) {
            if (!take(true, 0)) return false;
        }
        while (control_out_ > 0) {
            if (!take(false, 0)) return false;
        }
        return true;
    }

    // RDMA read: the first side posts `messages`, depth at a time, and looks at what came.
    bool begin_read(std::uint64_t i) {
        std::byte* to = pools_.receive.at(i);
        if (!is_verifying() && question_.size > 0) to[question_.size - 1] ^= std::byte{0xff};
        return post(i);
    }
    bool end_read(std::uint64_t i) {
        std::uint8_t& arrived = arrived_[slot_of(i)];
        while (arrived == 0) {
            if (!take(false, vi_to_reap_.now())) return false;
        }
        arrived = 0;
        return check(slot_of(i));  // the target's buffers were filled once
    }

private:
    std::size_t slot_of(std::uint64_t i) const { return i & (count_ - 1); }
    bool is_sender() const { return link_.is_first() || !is_stream(); }
    bool is_receiver() const { return !link_.is_first() || !is_stream(); }

    // Where nothing else keeps the target's program in its calls to the end, an empty message
    // tells that the other side has what it wanted.
    bool says_goodbye() const { return question_.op == Op::read ? link_.is_first() : !notified_; }
    bool hears_goodbye() const { return question_.op == Op::read ? !link_.is_first() : !notified_; }

    bool posted(bool good) { return good || give_up("{}", port_.trouble()); }

    bool post(std::uint64_t i) {
        VIP_DESCRIPTOR& descriptor = sends_[slot_of(i)];
        if (is_verifying()) descriptor.CS.ImmediateData = static_cast<VIP_UINT32>(i);
        if (!posted(port_.post_send(vi_to_post_.now(), &descriptor))) return false;
        vi_to_post_.pass();
        ++posted_;
        return true;
    }

    // Posts the receive of message i again, for message i + count_.
    bool refill(std::uint64_t i) {
        const bool good = posted(port_.post_receive(vi_to_refill_.now(), &receives_[slot_of(i)]));
        vi_to_refill_.pass();
        return good;
    }

    bool send_control() {
        while (control_out_ >= control_sends) {
            if (!take(false, 0)) return false;
        }
        if (!posted(
                port_.post_send(0, &control_out_descriptors_[controls_sent_ % control_sends]))) {
            return false;
        }
        ++controls_sent_;
        ++control_out_;
        return true;
    }

    bool post_control_receive() {
        VIP_DESCRIPTOR& descriptor = control_in_descriptors_[control_posted_ % control_receives];
        ++control_posted_;
        return posted(port_.post_receive(0, &descriptor));
    }

    bool post_first_receives() {
        if (is_receiver() && notified_ && question_.op != Op::read) {
            Turn vi = vi_to_take_;
            for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count_, messages_); ++i) {
                if (!posted(port_.post_receive(vi.now(), &receives_[i]))) return false;
                vi.pass();
            }
        }
        if (is_stream() && link_.is_first() && question_.op != Op::read) {
            control_expected_ = messages_ / credit_step_;
        }
        if (hears_goodbye()) ++control_expected_;
        while (control_posted_ < std::min(control_expected_, control_receives)) {
            if (!post_control_receive()) return false;
        }
        return true;
    }

    // One look at, or one sleep on, a queue; with a completion queue whatever comes.
    bool take(bool receive, std::uint32_t vi) {
        VIP_DESCRIPTOR* descriptor = nullptr;
        switch (port_.take(receive, vi, descriptor)) {
            case Took::nothing:
                return true;
            case Took::failed:
                return give_up("{}", port_.trouble());
            case Took::one:
                break;
        }
        return receive ? took_receive(descriptor) : took_send(descriptor);
    }

    bool took_send(const VIP_DESCRIPTOR* descriptor) {
        if (descriptor >= sends_ && descriptor < sends_ + count_) {
            ++reaped_;
            vi_to_reap_.pass();
            if (question_.op == Op::read)
                arrived_[static_cast<std::size_t>(descriptor - sends_)] = 1;
        } else {
            --control_out_;
        }
        return true;
    }

    bool took_receive(const VIP_DESCRIPTOR* descriptor) {
        if (descriptor < receives_ || descriptor >= receives_ + count_) {
            ++control_taken_;
            return control_posted_ >= control_expected_ || post_control_receive();
        }
        const auto slot = static_cast<std::size_t>(descriptor - receives_);
        if (question_.op == Op::send && descriptor->CS.Length != question_.size) {
            return give_up("a message of {} bytes arrived with Length {}", question_.size,
                           static_cast<VIP_UINT32>(descriptor->CS.Length));
        }
        if (is_verifying() && !immediate_is_right(*descriptor)) return false;
        arrived_[slot] = 1;
        return true;
    }

    bool immediate_is_right(const VIP_DESCRIPTOR& descriptor) {
        const VIP_UINT32 value = descriptor.CS.ImmediateData;
        const auto wanted = static_cast<VIP_UINT32>(verified_++);
        if ((descriptor.CS.Status & VIP_STATUS_IMMEDIATE) != 0 && value == wanted) return true;
        return give_up("immediate data {} arrived where {} was sent", value, wanted);
    }

    void lay_out_descriptors() {
        sends_ = reinterpret_cast<VIP_DESCRIPTOR*>(pools_.rest);
        receives_ = sends_ + count_;
        control_out_descriptors_ = receives_ + count_;
        control_in_descriptors_ = control_out_descriptors_ + control_sends;
        const std::size_t all = 2 * count_ + control_sends + control_receives;
        std::memset(static_cast<void*>(sends_), 0, all * sizeof(VIP_DESCRIPTOR));
        verified_ = 0;
        for (std::uint64_t b = 0; b < count_; ++b) {
            lay_out_send(sends_[b], b);
            if (question_.op != Op::send || question_.size == 0) continue;
            receives_[b].CS.SegCount = 1;
            receives_[b].CS.Length = static_cast<VIP_UINT32>(question_.size);
            receives_[b].DS[0].Local = port_.local(pools_.receive.at(b), question_.size);
        }
        if (question_.op != Op::read || link_.is_first()) return;
        for (std::uint64_t b = 0; b < count_; ++b) stamped(b);
    }

    void lay_out_send(VIP_DESCRIPTOR& descriptor, std::uint64_t b) {
        descriptor.CS.Length = static_cast<VIP_UINT32>(question_.size);
        VIP_UINT16 segments = 0;
        std::byte* here = pools_.send.at(b);
        if (question_.op == Op::write) {
            descriptor.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
            descriptor.DS[segments++].Remote = port_.remote(pools_.receive.at(b));
        } else if (question_.op == Op::read) {
            descriptor.CS.Control = VIP_CONTROL_OP_RDMAREAD;
            descriptor.DS[segments++].Remote = port_.remote(pools_.send.at(b));
            here = pools_.receive.at(b);
        }
        const bool with_immediate = question_.op != Op::read &&
                                    (is_verifying() || (question_.op == Op::write && notified_));
        if (with_immediate) {
            descriptor.CS.Control =
                static_cast<VIP_UINT16>(descriptor.CS.Control | VIP_CONTROL_IMMEDIATE);
        }
        if (question_.size > 0) {
            descriptor.DS[segments++].Local = port_.local(here, question_.size);
        }
        descriptor.CS.SegCount = segments;
    }

    ViaPort& port_;
    std::uint64_t count_ = 1;        // buffers, and descriptors of each kind
    std::uint64_t credit_step_ = 1;  // messages per credit
    bool notified_ = true;           // the target learns of a message by a completion
    std::uint64_t posted_ = 0;
    std::uint64_t reaped_ = 0;
    std::uint64_t control_expected_ = 0;
    std::uint64_t control_posted_ = 0;
    std::uint64_t control_taken_ = 0;
    std::uint64_t control_out_ = 0;  // sent and not reaped
    std::uint64_t controls_sent_ = 0;
    std::uint64_t verified_ = 0;
    Turn vi_to_post_, vi_to_reap_, vi_to_take_, vi_to_refill_;
    std::vector<std::uint8_t> arrived_;  // by buffer; of a read: completed
    VIP_DESCRIPTOR* sends_ = nullptr;
    VIP_DESCRIPTOR* receives_ = nullptr;
    VIP_DESCRIPTOR* control_out_descriptors_ = nullptr;
    VIP_DESCRIPTOR* control_in_descriptors_ = nullptr;
};

}  // namespace via::bench
