// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/message_protocols.hpp
 * @brief The three protocols behind via::MessageChannel.
 */
#pragma once

#include <via/channel_parts.hpp>

namespace via {

/** @cond */
namespace detail {

/**
 * An end of a message channel.
 *
 * The order of messages. With stores, a line of the ring says of each message, in the order of
 * sending, which way it comes; those posted to the VI keep their order among themselves. Without,
 * everything is a message of the VI.
 *
 * Room. A sender counts the lines and the VI's messages that it sent; the receiver says how many of
 * them it has taken, by quarters, with a store into the sender's segment, or with a message.
 * Besides `receives` for those there are `spare_receives` for what is bounded otherwise: an answer
 * and the notice of a transfer (one at a time each way), wake-ups (one for each sleep), what was
 * taken (one for each quarter), and the two of the beginning.
 *
 * Sleeping. Stores wake nobody. So a sleeper with a ring sets `asleep` in its segment, then looks
 * once more at everything that is stored for it, then sleeps until a message of the VI comes. Who
 * has stored something looks at the peer's `asleep`, and if it is set clears it and posts a message
 * of length 0. Between store and load there are fences that pair (ChannelFences), so either the
 * sleeper sees what was stored or the other sees it asleep; and a message that is posted before the
 * sleeper sleeps ends its sleep at once.
 *
 * The peer is hostile: of what it stores each word is read once and checked; what it posts lies in
 * private memory when it is looked at.
 */
class ChannelEnd {
public:
    ChannelEnd(VIP_NIC_HANDLE nic, Vi&& vi, const MessageChannelOptions& options,
               MemoryRegion&& all, BufferPool&& incoming, BufferPool&& outgoing)
        : nic_(nic),
          options_(options),
          all_(std::move(all)),
          incoming_(std::move(incoming)),
          outgoing_(std::move(outgoing)),
          arrived_(options.receives),
          vi_(std::move(vi)) {}

    static constexpr std::uint32_t spare_receives = 16;
    static constexpr std::uint32_t sends = 16;
    static constexpr std::uint32_t version = 1;

    // ---- Beginning ----

    /// Meets the peer's end.
    Expected<void> begin(const Nic& nic, std::size_t max_transfer_bytes) {
        piece_bytes_ = max_transfer_bytes;
        for (std::uint32_t n = 0; n < options_.receives + spare_receives; ++n) {
            const auto posted = vi_.post_receive(incoming_.take());
            if (!posted) return posted;
        }
        const auto lines = static_cast<std::uint32_t>(options_.ring_bytes / sizeof(StoreLine));
        ChannelFrame hello{.kind = FrameKind::hello,
                           .length = options_.message_max,
                           .version = version,
                           .receives = options_.receives};
        if (options_.stores_max != 0) {
            auto segment = SharedSegment::create(nic, StoreRing::segment_size(lines),
                                                 {.rdma_write = true, .rdma_read = true});
            if (!segment) return std::unexpected(std::move(segment.error()));
            ours_.emplace(std::move(*segment));
            ring_ = StoreRing(ours_->bytes(), lines);
            hello.address = ours_->remote().address;
            hello.handle = ours_->handle();
            hello.lines = lines;
            hello.stores_max = static_cast<std::uint32_t>(options_.stores_max);
            hello.fences = fences_.offer();
        }
        const Deadline deadline(options_.connect_timeout);
        post_frame(hello);
        auto met = wait_until([&] { return theirs_hello_.version != 0; }, deadline, false);
        if (!met) return met;
        const bool attaches = options_.stores_max != 0 && theirs_hello_.lines != 0;
        if (attaches) met = attach(nic, deadline);
        if (!met) return met;
        post_frame({.kind = FrameKind::ready, .number = theirs_.has_value() ? 1U : 0U});
        met = wait_until([&] { return theirs_ready_.has_value(); }, deadline, false);
        if (!met) return met;
        stores_ = theirs_.has_value() && *theirs_ready_;
        stores_max_ = std::min<std::size_t>(options_.stores_max, theirs_hello_.stores_max);
        message_max_ = std::min<std::size_t>(options_.message_max, theirs_hello_.length);
        return {};
    }

    // ---- Sending ----

    Expected<void> send(std::span<const std::byte> bytes, std::chrono::milliseconds timeout) {
        if (!usable()) return std::unexpected(*ended_);
        if (stores_ && bytes.size() <= stores_max_) return send_stored(bytes, timeout);
        if (bytes.empty() || bytes.size() <= message_max_) return send_posted(bytes, timeout);
        return send_written(bytes, timeout);
    }

    // ---- Receiving ----

    /// Whether a message is there, or has begun. Never sleeps.
    bool look() {
        if (held_.first() != nullptr || (transfer_ && whole_) || look_at_head()) return true;
        if (!stores_ || ++looks_ % looks_per_poll == 0 || !usable()) poll();
        return look_at_head();
    }
    Expected<void> wait(std::chrono::milliseconds timeout) {
        if (look()) return {};
        usable();
        return wait_until([&] { return look_at_head(); }, Deadline(timeout), false);
    }
    /// Of the message that look() or wait() found.
    std::size_t next_length() const noexcept {
        if (held_.first() != nullptr) return held_.first()->length;
        return transfer_ ? transfer_->length : head_->length;
    }
    /// Takes that message; `room` has its length.
    Expected<void> take(std::span<std::byte> room) {
        if (held_.first() == nullptr && transfer_) {
            const auto come = await_transfer();
            if (!come) return come;
            finish_transfer();
        }
        if (const Held* const held = held_.first(); held != nullptr) {
            copy(room, held->span());
            held_.pop();
            return {};
        }
        switch (head_->way) {
            case Way::stored:
                ring_.read(lines_taken_, room);
                break;
            case Way::posted: {
                const auto come = await_arrival();
                if (!come) return come;
                copy(room, payload_of_arrived());
                break;
            }
            default:
                return take_written(room);
        }
        leave_head();
        return {};
    }

    // ---- The end ----

    /// Any thread.
    void stop() noexcept {
        stopped_.store(true, std::memory_order_relaxed);
        static_cast<void>(vi_.disconnect());
    }
    /// @return the error that ended the channel, if it has ended
    const Error* ended() const noexcept { return ended_ ? &*ended_ : nullptr; }

    bool stores() const noexcept { return stores_; }
    std::size_t stores_max() const noexcept { return stores_ ? stores_max_ : 0; }
    std::size_t message_max() const noexcept { return message_max_; }
    const ChannelCounts& counts() const noexcept { return counts_; }
    const Vi& vi() const noexcept { return vi_; }

private:
    static constexpr std::uint32_t looks_per_poll = 64;  ///< of the ring, for one of the NIC
    /// Where a wake-up may not come: until the next look.
    static constexpr std::chrono::milliseconds unsure_sleep{1};

    /// A message of the VI that was not taken yet.
    struct Arrived {
        Buffer buffer;
        Way way = Way::none;
        std::uint64_t length = 0;
    };

    // Waiting ---------------------------------------------------------------------------------

    /// Polls, then sleeps, until ready() or the end. What ready() looks at changes by the peer's
    /// stores or messages alone. @param absorbs  takes in messages meanwhile
    template <class Ready>
    Expected<void> wait_until(Ready ready, const Deadline& deadline, bool absorbs) {
        for (;;) {
            for (std::uint32_t n = 0; n <= options_.polls; ++n) {
                const bool over = !usable();  // before the last look: what came before it counts
                if (over || !stores_ || n % looks_per_poll == looks_per_poll - 1) poll();
                if (ready()) return {};
                if (over) return std::unexpected(*ended_);
                relax_processor();
            }
            if (absorbs && absorb()) continue;
            if (deadline.over()) return std::unexpected(Error(VIP_TIMEOUT, "MessageChannel"));
            sleep(ready, deadline, absorbs);
        }
    }

    template <class Ready>
    void sleep(Ready ready, const Deadline& deadline, bool absorbs) {
        std::chrono::milliseconds most = deadline.left();
        if (stores_) {
            store(ring_.words().asleep, 1);
            if (!fences_.before_sleep()) most = std::min(most, unsure_sleep);
            if (ready() || (absorbs && absorb())) return store(ring_.words().asleep, 0);
        }
        ++counts_.sleeps;
        const auto done = vi_.receive_wait(most);
        if (stores_) store(ring_.words().asleep, 0);
        if (done)
            take_completion(*done);
        else if (done.error().code() != VIP_TIMEOUT)
            end(done.error());
    }

    /// After a store into the peer's segment that the peer may be waiting for.
    void wake() {
        fences_.after_store();
        std::atomic_ref asleep(peer_ring_.words().asleep);
        if (asleep.load(std::memory_order_relaxed) == 0) [[likely]]
            return;
        // One wake-up for each sleep, so that they are bounded.
        if (asleep.exchange(0, std::memory_order_relaxed) == 0) return;
        Buffer slot = take_slot();
        if (!slot) return;
        ++counts_.wakes;
        post(std::move(slot), [](Descriptor descriptor) { return descriptor.send(); });
    }

    bool usable() {
        if (stopped_.load(std::memory_order_relaxed) && !ended_) [[unlikely]]
            end(Error(VIP_INVALID_STATE, "MessageChannel"));
        return !ended_.has_value();
    }
    /// The first reason stays. Afterwards nothing touches anybody's bytes any more.
    [[gnu::cold]] void end(Error why) {
        if (stopped_.load(std::memory_order_relaxed))
            why = Error(VIP_INVALID_STATE, "MessageChannel", "it was stopped");
        if (!ended_) ended_ = std::move(why);
        static_cast<void>(vi_.disconnect());
    }
    /// Where what failed ends the channel. Whoever hears VIP_TIMEOUT from a channel that goes on
    /// may try again: so only the call whose time is up hears it, and every later one that it is
    /// over.
    [[gnu::cold, gnu::noinline]] std::unexpected<Error> end_by(const Error& why,
                                                               const char* in_time) {
        if (ended_ || why.code() != VIP_TIMEOUT) {
            end(why);
            return failure_of_end();
        }
        const std::string text = std::string(in_time) + ", which has ended the channel. ";
        end(Error(VIP_INVALID_STATE, "MessageChannel", text + "Connect again"));
        return std::unexpected(Error(VIP_TIMEOUT, "MessageChannel", text + "Give it longer"));
    }
    [[gnu::cold, gnu::noinline]] void lied(const char* what) {
        whole_ = false;
        end(Error(VIP_REJECT, "MessageChannel",
                  std::string("the peer broke the rules of the channel: ") + what +
                      ". Connect again, with a peer of the same version"));
    }
    std::unexpected<Error> failure_of_end() const { return std::unexpected(*ended_); }

    // Posting ---------------------------------------------------------------------------------

    /// A buffer for a frame; none when the channel has ended.
    Buffer take_slot() {
        Buffer slot = outgoing_.take();
        while (!slot && reap()) slot = outgoing_.take();
        return slot;
    }
    /// Waits until the oldest send is done. It never waits for the peer's program.
    bool reap() {
        Expected<Completion> done = vi_.send_done();
        for (std::uint32_t n = 0; done && !*done && n < options_.polls; ++n) done = vi_.send_done();
        if (done && !*done) done = vi_.send_wait(options_.transfer_timeout);
        if (!done) {
            static_cast<void>(end_by(done.error(), "the peer's NIC took nothing in time"));
            return false;
        }
        outgoing_.reclaim(*done).give_back();
        --under_way_;
        return true;
    }
    /// Waits until the program's bytes are its own again.
    Expected<void> reap_all() {
        while (under_way_ > 0)
            if (!reap()) break;
        if (ended_) return failure_of_end();
        return {};
    }
    /// @param build  the slot's descriptor
    template <class Build>
    void post(Buffer&& slot, Build build) {
        const auto posted = vi_.post_send(build(slot.descriptor()));
        if (!posted) return end(posted.error());
        slot.release();
        ++under_way_;
    }
    void post_frame(const ChannelFrame& frame, std::span<const std::byte> bytes = {}) {
        Buffer slot = take_slot();
        if (!slot) return;
        std::memcpy(slot.bytes().data(), &frame, sizeof frame);
        const Segment first = slot.segment(sizeof frame);
        post(std::move(slot), [&](Descriptor descriptor) {
            return bytes.empty() ? descriptor.send(first) : descriptor.send(first, local(bytes));
        });
    }
    Segment local(std::span<const std::byte> bytes) const noexcept {
        return all_.segment({const_cast<std::byte*>(bytes.data()), bytes.size()});
    }

    // Sending ---------------------------------------------------------------------------------

    Expected<void> send_stored(std::span<const std::byte> bytes,
                               std::chrono::milliseconds timeout) {
        const std::uint64_t lines = StoreRing::lines_of(bytes.size());
        if (!has_lines(lines)) {
            const auto room = wait_until([&] { return has_lines(lines); }, Deadline(timeout), true);
            if (!room) return room;
        }
        peer_ring_.write(lines_sent_, bytes);
        lines_sent_ += lines;
        ++counts_.sent.stored;
        wake();
        return {};
    }

    Expected<void> send_posted(std::span<const std::byte> bytes,
                               std::chrono::milliseconds timeout) {
        const auto begun = begin_message(Way::posted, bytes.size(), timeout);
        if (!begun) return begun;
        ++messages_sent_;
        post_frame({.kind = FrameKind::message, .length = bytes.size()}, bytes);
        const auto sent = reap_all();
        if (sent) ++counts_.sent.posted;
        return sent;
    }

    /// Waits for room, and announces it where that needs a line of its own.
    Expected<void> begin_message(Way way, std::uint64_t length, std::chrono::milliseconds timeout) {
        const auto room = [&] {
            return (!stores_ || has_lines(1)) &&
                   ((stores_ && way == Way::written) || has_receives());
        };
        if (!room()) {
            const auto come = wait_until(room, Deadline(timeout), true);
            if (!come) return come;
        }
        if (stores_) peer_ring_.announce(lines_sent_++, way, length);
        return {};
    }

    Expected<void> send_written(std::span<const std::byte> bytes,
                                std::chrono::milliseconds timeout) {
        const Deadline deadline(timeout);
        const auto begun = begin_message(Way::written, bytes.size(), timeout);
        if (!begun) return begun;
        ++number_sent_;
        if (stores_) {
            wake();
        } else {
            ++messages_sent_;
            post_frame({.kind = FrameKind::large, .length = bytes.size()});
        }
        const auto answered = wait_until([&] { return has_answer(); }, deadline, true);
        if (!answered)  // the peer may answer at any time from now on: there is no way back
            return end_by(answered.error(), "the peer did not take a large message in time");
        const RemoteSegment target{answer_.address, bytes.size(), answer_.handle, 0};
        for (std::size_t at = 0; at < bytes.size();) {
            const auto part = bytes.subspan(at, std::min(piece_bytes_, bytes.size() - at));
            Buffer slot = take_slot();
            if (!slot) return failure_of_end();
            const bool last = at + part.size() == bytes.size();
            post(std::move(slot), [&](Descriptor descriptor) {
                descriptor.rdma_write(target.from(at), local(part));
                if (last) descriptor.immediate(static_cast<VIP_UINT32>(number_sent_));
                return descriptor;
            });
            at += part.size();
        }
        const auto written = reap_all();
        if (written) ++counts_.sent.written;
        return written;
    }

    /// Whether the peer's ring has so many free lines.
    bool has_lines(std::uint64_t lines) {
        if (lines_sent_ + lines - lines_back_ <= peer_ring_.lines()) [[likely]]
            return true;
        const std::uint64_t back = load(ring_.words().lines_taken);
        if (back - lines_back_ > lines_sent_ - lines_back_) {
            lied("it took more than was stored");
            return false;
        }
        lines_back_ = back;
        return lines_sent_ + lines - lines_back_ <= peer_ring_.lines();
    }
    bool has_receives() {
        if (messages_sent_ - messages_back_ < theirs_hello_.receives) [[likely]]
            return true;
        if (stores_) messages_are_back(load(ring_.words().messages_taken));
        return messages_sent_ - messages_back_ < theirs_hello_.receives;
    }
    void messages_are_back(std::uint64_t count) {
        if (count - messages_back_ > messages_sent_ - messages_back_)
            return lied("it took more messages than were sent");
        messages_back_ = count;
    }
    bool has_answer() {
        if (!stores_) return answer_.number == number_sent_;
        SharedWords& words = ring_.words();
        if (load(words.answer_number) != number_sent_) return false;
        answer_ = {.handle = static_cast<std::uint32_t>(load(words.answer_handle)),
                   .address = load(words.answer_address),
                   .number = number_sent_};
        return true;
    }

    // Receiving -------------------------------------------------------------------------------

    /// Finds the next message, if it has been announced; each is read once.
    bool look_at_head() {
        if (!whole_) return false;
        if (head_) return true;
        if (!stores_) {
            if (arrived_count_ == 0) return false;
            const Arrived& first = arrived_[arrived_first_];
            head_ = {first.way, first.length};
            return true;
        }
        const auto slot = ring_.look(lines_taken_);
        if (!slot) return false;
        const std::uint64_t most = slot->way == Way::stored   ? options_.stores_max
                                   : slot->way == Way::posted ? options_.message_max
                                                              : longest_message;
        if (slot->way == Way::none || slot->length > most) {
            lied("a message that cannot be");
            return false;
        }
        head_ = slot;
        return true;
    }
    /// Done with the head: its line and its receive are the peer's again.
    void leave_head() {
        const bool posted = head_->way == Way::posted || !stores_;
        ++(head_->way == Way::stored   ? counts_.received.stored
           : head_->way == Way::posted ? counts_.received.posted
                                       : counts_.received.written);
        if (stores_)
            lines_taken_ += head_->way == Way::stored ? StoreRing::lines_of(head_->length) : 1;
        head_.reset();
        if (posted) {
            Arrived& first = arrived_[arrived_first_];
            arrived_first_ = (arrived_first_ + 1) % options_.receives;
            --arrived_count_;
            ++messages_taken_;
            repost(std::move(first.buffer));
        }
        give_room_back();
    }
    /// By quarters: often enough that half a ring is free when all is taken.
    void give_room_back() {
        const bool lines = stores_ && lines_taken_ - lines_told_ >= ring_.lines() / 4;
        const bool messages = messages_taken_ - messages_told_ >= options_.receives / 4;
        if (!lines && !messages) [[likely]]
            return;
        messages_told_ = messages_taken_;
        if (!stores_) return post_frame({.kind = FrameKind::taken, .number = messages_taken_});
        lines_told_ = lines_taken_;
        store(peer_ring_.words().messages_taken, messages_taken_);
        store(peer_ring_.words().lines_taken, lines_taken_);
        wake();
    }

    /// Whether the message of the VI that was announced is there.
    bool has_arrival() {
        if (arrived_count_ == 0) poll();
        if (arrived_count_ == 0) return false;
        const Arrived& first = arrived_[arrived_first_];
        if (first.way == head_->way && first.length == head_->length) return true;
        lied("a message that is not the one announced");
        return false;
    }
    Expected<void> await_arrival() {
        return begun_must_end(
            wait_until([&] { return has_arrival(); }, Deadline(options_.transfer_timeout), false));
    }
    std::span<std::byte> payload_of_arrived() const noexcept {
        const Arrived& first = arrived_[arrived_first_];
        return first.buffer.bytes().subspan(sizeof(ChannelFrame), first.length);
    }
    /// What has begun and does not come ends the channel.
    Expected<void> begun_must_end(Expected<void> come) {
        if (come) return come;
        whole_ = false;
        return end_by(come.error(), "the rest of a message did not come in time");
    }

    // A large message on its way here.
    struct Transfer {
        std::size_t length;
        std::unique_ptr<Held> held;  ///< where to, if not to the program's own memory
        bool done = false;
    };

    /// @param cache  for the program's memory alone: held memory is freed without a word
    void begin_transfer(std::span<std::byte> to, RegistrationCache* cache) {
        ++number_received_;
        const auto exposed = exposed_.begin(nic_, to, cache);
        if (!exposed) return end(exposed.error());
        const auto address = reinterpret_cast<std::uintptr_t>(to.data());
        if (!stores_)
            return post_frame({.kind = FrameKind::answer,
                               .handle = exposed_.handle(),
                               .address = address,
                               .number = number_received_});
        SharedWords& words = peer_ring_.words();
        store(words.answer_address, std::uint64_t{address});
        store(words.answer_handle, std::uint64_t{exposed_.handle()});
        store(words.answer_number, number_received_);
        wake();
    }
    Expected<void> await_transfer() {
        auto come = wait_until(
            [&] {
                if (!transfer_->done) poll();
                return transfer_->done;
            },
            Deadline(options_.transfer_timeout), false);
        return begun_must_end(std::move(come));
    }
    /// One that went to held memory.
    void finish_transfer() {
        exposed_.end();
        held_.push(std::move(transfer_->held));
        ++counts_.held;
        transfer_.reset();
    }
    Expected<void> take_written(std::span<std::byte> room) {
        transfer_.emplace(room.size());
        begin_transfer(room, options_.registrations);
        leave_head();
        const auto come = await_transfer();
        exposed_.end();
        transfer_.reset();
        return come;
    }

    /// Takes the next message in, while send() waits. @return whether something has changed
    bool absorb() {
        if (transfer_) {
            if (!transfer_->done) poll();
            if (!transfer_->done) return false;
            finish_transfer();
            return true;
        }
        if (!look_at_head() || HeldList::cost(head_->length) > options_.held_max - held_.bytes())
            return false;
        if (head_->way == Way::posted && !has_arrival()) return false;
        auto held = hold(head_->length);
        if (!held) return false;
        if (head_->way == Way::written) {
            transfer_.emplace(held->length);
            transfer_->held = std::move(held);
            begin_transfer(transfer_->held->span(), nullptr);
        } else {
            if (head_->way == Way::stored)
                ring_.read(lines_taken_, held->span());
            else
                copy(held->span(), payload_of_arrived());
            held_.push(std::move(held));
            ++counts_.held;
        }
        leave_head();
        return true;
    }

    // What the VI brings ----------------------------------------------------------------------

    /// Bounded, however much the peer sends.
    void poll() {
        for (std::uint32_t n = 0; n < options_.receives + spare_receives; ++n) {
            const auto done = vi_.receive_done();
            if (!done) return end(done.error());
            if (!*done) return;
            take_completion(*done);
        }
    }

    void take_completion(const Completion& done) {
        Buffer buffer = incoming_.reclaim(done);
        if (done.operation() == Operation::remote_rdma_write) {
            if (!transfer_ || transfer_->done ||
                done.immediate() != static_cast<VIP_UINT32>(number_received_))
                return lied("the end of a transfer that never began");
            transfer_->done = true;
        } else if (done.length() != 0) {
            if (done.length() < sizeof(ChannelFrame)) return lied("a message too short");
            ChannelFrame frame;
            std::memcpy(&frame, buffer.bytes().data(), sizeof frame);
            if (!take_frame(frame, done.length() - sizeof frame, buffer)) return;
        }
        if (buffer) repost(std::move(buffer));
    }
    void repost(Buffer&& buffer) {
        if (ended_) return;
        if (const auto posted = vi_.post_receive(std::move(buffer)); !posted) end(posted.error());
    }

    /// @return false: the channel has ended. @param buffer  kept, if it is to be taken later
    bool take_frame(const ChannelFrame& frame, std::size_t payload, Buffer& buffer) {
        const bool empty = payload == 0;
        switch (frame.kind) {
            case FrameKind::hello:
                if (empty && theirs_hello_.version == 0) return take_hello(frame);
                break;
            case FrameKind::ready:
                if (!empty || theirs_ready_ || frame.number > 1) break;
                theirs_ready_ = frame.number == 1;
                return true;
            case FrameKind::message:
                if (frame.length != payload || payload > options_.message_max) break;
                return arrive({std::move(buffer), Way::posted, frame.length});
            case FrameKind::large:
                if (!empty || stores_ || frame.length > longest_message) break;
                return arrive({std::move(buffer), Way::written, frame.length});
            case FrameKind::answer:
                if (!empty || stores_ || frame.number != number_sent_ ||
                    answer_.number == number_sent_)
                    break;
                answer_ = frame;
                return true;
            case FrameKind::taken:
                if (!empty || stores_) break;
                messages_are_back(frame.number);
                return !ended_;
        }
        lied("a message that makes no sense");
        return false;
    }
    bool arrive(Arrived&& message) {
        if (arrived_count_ == options_.receives || !theirs_ready_) {
            lied("more messages than it may send");
            return false;
        }
        arrived_[(arrived_first_ + arrived_count_++) % options_.receives] = std::move(message);
        return true;
    }
    bool take_hello(const ChannelFrame& hello) {
        const bool ring_is_one = hello.lines == 0 || (hello.lines >= StoreRing::fewest_lines &&
                                                      hello.lines <= StoreRing::most_lines &&
                                                      std::has_single_bit(hello.lines));
        if (hello.version != version || hello.receives == 0 || !ring_is_one ||
            hello.stores_max > StoreRing::longest_in(hello.lines)) {
            lied("another version, or sizes that cannot be");
            return false;
        }
        theirs_hello_ = hello;
        fences_.heard(hello.fences);
        return true;
    }
    Expected<void> attach(const Nic& nic, const Deadline& deadline) {
        const std::size_t size = StoreRing::segment_size(theirs_hello_.lines);
        auto segment = ImportedSegment::attach(
            nic, vi_, {theirs_hello_.address, size, theirs_hello_.handle, 0}, Attached::writable,
            deadline.left());
        if (!segment && segment.error().code() == VIP_ERROR_NOT_SUPPORTED) return {};
        if (!segment) return std::unexpected(std::move(segment.error()));
        if (segment->bytes().size() != size) {
            lied("a segment of another size");
            return failure_of_end();
        }
        theirs_.emplace(std::move(*segment));
        peer_ring_ = StoreRing(theirs_->bytes(), theirs_hello_.lines);
        return {};
    }

    static void copy(std::span<std::byte> to, std::span<const std::byte> from) noexcept {
        if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
    }
    static std::unique_ptr<Held> hold(std::size_t length) noexcept {
        std::unique_ptr<Held> held(new (std::nothrow) Held);
        if (!held) return nullptr;
        held->length = length;
        held->bytes.reset(new (std::nothrow) std::byte[length]);
        return held->bytes ? std::move(held) : nullptr;
    }

    static constexpr std::uint64_t longest_message = PTRDIFF_MAX;

    const VIP_NIC_HANDLE nic_;
    const MessageChannelOptions options_;
    // In the order of their ends, last first: the VI lets go of all that is behind it here.
    HeldList held_;
    std::optional<Transfer> transfer_;
    Exposed exposed_;
    MemoryRegion all_;
    BufferPool incoming_;
    BufferPool outgoing_;
    std::optional<SharedSegment> ours_;
    std::optional<ImportedSegment> theirs_;
    std::vector<Arrived> arrived_;  ///< a ring of options_.receives
    Vi vi_;

    StoreRing ring_;       ///< in ours_
    StoreRing peer_ring_;  ///< in theirs_
    ChannelFences fences_;
    bool stores_ = false;
    std::size_t stores_max_ = 0;
    std::size_t message_max_ = 0;
    std::size_t piece_bytes_ = 0;  ///< of one RDMA write
    ChannelFrame theirs_hello_;
    std::optional<bool> theirs_ready_;
    std::atomic<bool> stopped_ = false;
    std::optional<Error> ended_;
    bool whole_ = true;  ///< what comes next from the peer has come whole, if it has come
    ChannelCounts counts_;

    std::uint64_t lines_sent_ = 0;
    std::uint64_t lines_back_ = 0;     ///< of those: free again
    std::uint64_t messages_sent_ = 0;  ///< by the VI, each in a receive of the peer
    std::uint64_t messages_back_ = 0;
    std::uint64_t number_sent_ = 0;  ///< large messages
    ChannelFrame answer_;            ///< to the last of them
    std::size_t under_way_ = 0;      ///< posted sends

    std::optional<StoreSlot> head_;  ///< the next message, once seen
    std::size_t arrived_first_ = 0;
    std::size_t arrived_count_ = 0;
    std::uint64_t lines_taken_ = 0;
    std::uint64_t lines_told_ = 0;  ///< of those: the peer knows
    std::uint64_t messages_taken_ = 0;
    std::uint64_t messages_told_ = 0;
    std::uint64_t number_received_ = 0;  ///< large messages
    std::uint32_t looks_ = 0;
};

}  // namespace detail
/** @endcond */

}  // namespace via
