// One side of a device's channel. Data goes from buffer i modulo count to buffer i modulo count;
// the window of messages that may be under way is the number of buffers, and in a stream the
// receiver returns credits, empty messages on the first VI, as VIA programs do.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bench/end.hpp"
#include "bench/via_descriptors.hpp"
#include "bench/via_port.hpp"

namespace via::bench {

inline constexpr std::uint64_t credits_per_window = 4;

class ViaEnd : public End {
public:
    ViaEnd(Link& link, ViaPort& port) : End(link), port_(port) {}

    bool begin(const Question& question, std::uint64_t messages) {
        if (question.size > port_.max_transfer_bytes()) {
            return give_up("messages of {} bytes are more than the NIC's MaxTransferSize of {}",
                           question.size, port_.max_transfer_bytes());
        }
        if (!End::begin(question, messages)) return false;
        count_ = pools_.send.window();
        credit_step_ = std::max<std::uint64_t>(count_ / credits_per_window, 1);
        // Without a completion at the target, an RDMA write is seen by looking at memory.
        notified_ = question.op != Op::write || question.wait == Wait::block ||
                    question.immediate || is_verifying();
        posted_ = reaped_ = 0;
        refill_due_ = false;
        control_expected_ = control_posted_ = control_taken_ = control_out_ = 0;
        arrived_.assign(count_, 0);
        const std::uint32_t vis = question.active_vis;
        vi_to_post_ = vi_to_reap_ = vi_to_take_ = Turn(vis);
        vi_to_refill_ = Turn(vis, count_);
        sends_to_post_.clear();
        receives_to_post_.clear();
        lay_out_descriptors();
        return post_first_receives();
    }

    bool send(std::uint64_t i) {
        while (!has_room()) {
            if (!take(false, vi_to_reap_.now())) return false;
        }
        while (!has_credit(i)) {
            if (!take(true, port_.control_vi())) return false;
        }
        stamped(i);
        return post(i) && (is_stream() || tidy());
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
                if (!take(true, port_.control_vi())) return false;
                left = looks;
            }
        }
        if (!check(i)) return false;
        if (notified_ && i + count_ < messages_) {
            if (is_stream() || count_ == 1) {
                if (!refill(i)) return false;
            } else {
                refill_due_ = true;
                to_refill_ = i;
            }
        }
        return !is_stream() || ((i + 1) & (credit_step_ - 1)) != 0 || send_control();
    }

    // All that was posted is taken back, on both sides.
    bool finish() {
        while (posted_ != reaped_) {
            if (!take(false, vi_to_reap_.now())) return false;
        }
        if (says_goodbye() && !send_control()) return false;
        while (control_taken_ < control_expected_) {
            if (!take(true, port_.control_vi())) return false;
        }
        while (control_out_ > 0) {
            if (!take(false, port_.control_vi())) return false;
        }
        return true;
    }

    // For streams in both directions at once.
    bool can_send(std::uint64_t i) const { return has_room() && has_credit(i); }
    bool has_arrived(std::uint64_t i) const {
        const Pool& pool = pools_.receive;
        return notified_ ? arrived_[slot_of(i)] != 0
                         : tail_arrived(pool.at(i), question_.size, i, pool.count);
    }
    bool look() {
        if (port_.has_one_queue()) return take(true, 0);
        if (posted_ != reaped_ && !take(false, vi_to_reap_.now())) return false;
        if (control_taken_ < control_expected_ && !take(true, port_.control_vi())) return false;
        return !notified_ || take(true, vi_to_take_.now());
    }

    // RDMA read or atomic operation: the first side posts `messages`, depth at a time, and looks at
    // what came.
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
        return check(i, pools_.send.index(i));  // the target's buffers were filled once
    }

private:
    std::size_t slot_of(std::uint64_t i) const { return i & (count_ - 1); }
    // In a stream only one side sends, unless both do.
    bool goes_one_way() const { return is_stream() && !question_.both_ways; }
    bool is_sender() const { return link_.is_first() || !goes_one_way(); }
    bool is_receiver() const { return !link_.is_first() || !goes_one_way(); }
    // Several to be posted at once wait for room for all of them: with room for one at a time they
    // would be posted one at a time.
    // In ping-pong the answer says enough of the message before it: its send is taken back when the
    // next one is under way.
    bool has_room() const {
        const std::uint64_t under_way = posted_ - reaped_;
        return !sends_to_post_.empty() || under_way == 0 ||
               under_way + question_.post_many <= (is_stream() ? question_.depth : count_);
    }
    bool has_credit(std::uint64_t i) const {
        return !is_stream() || i - control_taken_ * credit_step_ < count_;
    }

    // Where nothing else keeps the target's program in its calls to the end, an empty message
    // tells that the other side has what it wanted.
    bool says_goodbye() const { return is_answered(question_.op) ? link_.is_first() : !notified_; }
    bool hears_goodbye() const {
        return is_answered(question_.op) ? !link_.is_first() : !notified_;
    }

    // In ping-pong while the answer is on its way, as programs do it: the receive of the message
    // that was answered, and one look whether the answer is sent.
    bool tidy() {
        if (std::exchange(refill_due_, false) && !refill(to_refill_)) return false;
        return question_.wait == Wait::block || take(false, vi_to_reap_.now());
    }

    bool posted(bool good) { return good || give_up("{}", port_.failure()); }

    bool post(std::uint64_t i) {
        VIP_DESCRIPTOR& descriptor = *sends_.at(slot_of(i));
        if (pools_.send.again != 0) aim_send(descriptor, i);
        if (numbers_) descriptor.CS.ImmediateData = static_cast<VIP_UINT32>(i);
        ++posted_;
        if (question_.post_many > 1) {
            sends_to_post_.push_back(&descriptor);
            return sends_to_post_.size() < question_.post_many || post_sends();
        }
        const bool good = question_.op == Op::atomic
                              ? port_.post_atomic(vi_to_post_.now(), &descriptor)
                              : port_.post_send(vi_to_post_.now(), &descriptor);
        if (!posted(good)) return false;
        vi_to_post_.pass();
        return true;
    }

    // What was put by for one call goes before we look for what comes of it, and receives before
    // the peer is told of them.
    bool post_sends() {
        if (sends_to_post_.empty()) return true;
        const bool good = posted(port_.post_sends(0, sends_to_post_));
        sends_to_post_.clear();
        return good;
    }
    bool post_receives() {
        if (receives_to_post_.empty()) return true;
        const bool good = posted(port_.post_receives(0, receives_to_post_));
        receives_to_post_.clear();
        return good;
    }

    // Posts the receive of message i again, for message i + count_.
    bool refill(std::uint64_t i) {
        VIP_DESCRIPTOR& descriptor = *receives_.at(slot_of(i));
        if (pools_.receive.again != 0) aim_receive(descriptor, i + count_);
        if (question_.post_many > 1) {
            receives_to_post_.push_back(&descriptor);
            return receives_to_post_.size() < question_.post_many || post_receives();
        }
        const bool good = posted(port_.post_receive(vi_to_refill_.now(), &descriptor));
        vi_to_refill_.pass();
        return good;
    }

    bool send_control() {
        if (!post_receives()) return false;
        while (control_out_ >= control_sends) {
            if (!take(false, port_.control_vi())) return false;
        }
        if (!posted(port_.post_send(port_.control_vi(),
                                    controls_out_.at(controls_sent_ % control_sends)))) {
            return false;
        }
        ++controls_sent_;
        ++control_out_;
        return true;
    }

    bool post_control_receive() {
        VIP_DESCRIPTOR* descriptor = controls_in_.at(control_posted_ % control_receives);
        ++control_posted_;
        return posted(port_.post_receive(port_.control_vi(), descriptor));
    }

    bool post_first_receives() {
        if (is_receiver() && notified_ && !is_answered(question_.op)) {
            Turn vi = vi_to_take_;
            for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count_, messages_); ++i) {
                if (!posted(port_.post_receive(vi.now(), receives_.at(i)))) return false;
                vi.pass();
            }
        }
        if (is_stream() && is_sender() && !is_answered(question_.op)) {
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
        if (!post_sends()) return false;
        if (question_.post_many > 1 && question_.wait == Wait::poll && !port_.has_one_queue())
            return take_many(receive, vi);
        VIP_DESCRIPTOR* descriptor = nullptr;
        switch (port_.take(receive, vi, descriptor)) {
            case Took::nothing:
                return true;
            case Took::failed:
                return give_up("{}", port_.failure());
            case Took::one:
                break;
        }
        return receive ? took_receive(descriptor) : took_send(descriptor);
    }

    // Who posts several by one call takes them so, too.
    bool take_many(bool receive, std::uint32_t vi) {
        std::array<VIP_DESCRIPTOR*, most_posted> taken;
        VIP_UINT32 count = 0;
        const auto room = std::span(taken).first(question_.post_many);
        switch (port_.take_many(receive, vi, room, count)) {
            case Took::nothing:
                return true;
            case Took::failed:
                return give_up("{}", port_.failure());
            case Took::one:
                break;
        }
        for (const VIP_DESCRIPTOR* descriptor : room.first(count))
            if (!(receive ? took_receive(descriptor) : took_send(descriptor))) return false;
        return true;
    }

    bool took_send(const VIP_DESCRIPTOR* descriptor) {
        if (sends_.has(descriptor)) {
            ++reaped_;
            vi_to_reap_.pass();
            if (is_answered(question_.op)) arrived_[sends_.slot_of(descriptor)] = 1;
        } else {
            --control_out_;
        }
        return true;
    }

    bool took_receive(const VIP_DESCRIPTOR* descriptor) {
        if (!receives_.has(descriptor)) {
            ++control_taken_;
            return control_posted_ >= control_expected_ || post_control_receive();
        }
        const std::uint64_t slot = receives_.slot_of(descriptor);
        if (question_.op == Op::send && descriptor->CS.Length != question_.size) {
            return give_up("a message of {} bytes arrived with Length {}", question_.size,
                           static_cast<VIP_UINT32>(descriptor->CS.Length));
        }
        if (numbers_ && !immediate_is_right(*descriptor, slot)) return false;
        arrived_[slot] = 1;
        return true;
    }

    // The message's number: of one VI the next, of several the one that comes to this slot.
    bool immediate_is_right(const VIP_DESCRIPTOR& descriptor, std::uint64_t slot) {
        const VIP_UINT32 value = descriptor.CS.ImmediateData;
        const auto wanted = static_cast<VIP_UINT32>(verified_++);
        const bool right = question_.active_vis == 1 ? value == wanted : slot_of(value) == slot;
        if ((descriptor.CS.Status & VIP_STATUS_IMMEDIATE) != 0 && right) return true;
        return give_up("immediate data {} arrived where {} was sent", value, wanted);
    }

    void lay_out_descriptors() {
        sends_ = DescriptorRing(pools_.rest, count_, question_.segments);
        receives_ = DescriptorRing(sends_.end(), count_, question_.segments);
        controls_out_ = DescriptorRing(receives_.end(), control_sends, 1);
        controls_in_ = DescriptorRing(controls_out_.end(), control_receives, 1);
        verified_ = 0;
        numbers_ = is_verifying() || question_.immediate;
        for (std::uint64_t slot = 0; slot < count_; ++slot) {
            set_control(sends_.at(slot)->CS.Control);
            aim_send(*sends_.at(slot), slot);
            if (question_.op == Op::send) aim_receive(*receives_.at(slot), slot);
        }
        if (!is_answered(question_.op) || link_.is_first()) return;
        for (std::uint64_t n = 0; n < pools_.send.total(); ++n) stamped(pools_.send.buffer(n), n);
    }

    void set_control(VIP_UINT16& control) const {
        control = question_.op == Op::write  ? VIP_CONTROL_OP_RDMAWRITE
                  : question_.op == Op::read ? VIP_CONTROL_OP_RDMAREAD
                                             : VIP_CONTROL_OP_SENDRECV;
        const bool with_immediate =
            !is_answered(question_.op) && (numbers_ || (question_.op == Op::write && notified_));
        if (with_immediate) control = static_cast<VIP_UINT16>(control | VIP_CONTROL_IMMEDIATE);
    }

    // From, or to, the buffers of message i.
    void aim_send(VIP_DESCRIPTOR& descriptor, std::uint64_t i) const {
        if (question_.op == Op::send) {
            return set_pieces(port_, descriptor, 0, pools_.send.at(i), question_);
        }
        const bool reads = is_answered(question_.op);
        segment_of<VIP_ADDRESS_SEGMENT>(descriptor, 0) =
            port_.remote(reads ? pools_.send.at(i) : pools_.receive.at(i));
        set_pieces(port_, descriptor, 1, reads ? pools_.receive.at(i) : pools_.send.at(i),
                   question_);
    }
    void aim_receive(VIP_DESCRIPTOR& descriptor, std::uint64_t i) const {
        if (question_.op == Op::send) {
            set_pieces(port_, descriptor, 0, pools_.receive.at(i), question_);
        }
    }

    ViaPort& port_;
    std::uint64_t count_ = 1;        // buffers, and descriptors of each kind
    std::uint64_t credit_step_ = 1;  // messages per credit
    bool refill_due_ = false;        // the receive of message to_refill_ is to be posted again
    std::uint64_t to_refill_ = 0;
    bool notified_ = true;  // the target learns of a message by a completion
    std::uint64_t posted_ = 0;
    std::uint64_t reaped_ = 0;
    std::uint64_t control_expected_ = 0;
    std::uint64_t control_posted_ = 0;
    std::uint64_t control_taken_ = 0;
    std::uint64_t control_out_ = 0;  // sent and not reaped
    std::uint64_t controls_sent_ = 0;
    std::uint64_t verified_ = 0;
    Turn vi_to_post_, vi_to_reap_, vi_to_take_, vi_to_refill_;
    std::vector<VIP_DESCRIPTOR*> sends_to_post_, receives_to_post_;
    std::vector<std::uint8_t> arrived_;  // by buffer; of a read: completed
    bool numbers_ = false;               // every message carries its number as immediate data
    DescriptorRing sends_, receives_, controls_out_, controls_in_;
};

}  // namespace via::bench
