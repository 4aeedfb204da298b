// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/message_channel.hpp
 * @brief Messages of any size over a connection, each by the fastest way: via::MessageChannel.
 */
#pragma once

#include <via/message_protocols.hpp>

namespace via {

/**
 * Whole messages of any size, both ways, in order, over one connected VI. By its length each goes
 *  - by **stores** into a ring in the peer's memory: no descriptor, no call, no NIC;
 *  - as **one message** of the VI, which the receiver copies out;
 *  - by **RDMA** from the sender's memory into the receiver's, after a question and an answer.
 *
 * Both ends make one; its first messages tell each where the other's ring is. Where processes
 * cannot share memory the small ones are messages of the VI, too. Move-only.
 *
 * What is promised about waiting. send() returns when the bytes are the program's again: a small or
 * middle message may not have been received yet, of a large one the receiver was there. While it
 * waits (for room, or for the peer to take a large message) it takes in what the peer sends, up to
 * `held_max` bytes of messages; receive() gives them out later. So two ends that both send first
 * and receive afterwards do not wait for each other for ever, as long as what either has not
 * received fits in there.
 *
 * Whoever waits polls for a while, then sleeps and uses no processor.
 *
 * The peer may die, leave or lie: then the call that sees it, and every later one, returns the
 * error that ended the channel; messages that had come whole are received first. Nothing is left
 * under way: the connection has ended, and the program's bytes are its own. Error::flushed() tells
 * the usual end, a peer that has gone; VIP_REJECT a peer that broke the rules.
 *
 * While a large message is received the peer may write to the receiver's bytes, and to those only,
 * unless a RegistrationCache keeps them.
 *
 * The destructor disconnects. The NIC must stay open as long as the channel is used; destroying the
 * two is good in any order.
 *
 * Threads: one at a time, as a std::vector; only stop() may be called by any thread at any time.
 * On small and middle messages nothing is allocated, but for what send() takes in.
 */
class MessageChannel {
public:
    // Not inline: in a std::optional compilers see it read what it never reads, and warn.
    [[gnu::noinline]] ~MessageChannel() {}
    /** Moves; `other` is empty afterwards, and may only be destroyed or assigned to. */
    MessageChannel(MessageChannel&& other) noexcept = default;
    /** Moves; what this was ends first. */
    MessageChannel& operator=(MessageChannel&& other) noexcept = default;

    /** What a channel needs of its VI: reliable, credits, RDMA both ways. Queues must be its own.
     */
    static ViOptions vi_options() noexcept {
        return {
            .max_transfer_bytes = 1 << 20, .rdma_write = true, .rdma_read = true, .credits = true};
    }

    /**
     * Makes this end, and waits for the peer's.
     * @param vi  connected, made with vi_options() at both ends, nothing posted; the channel's now,
     *            on failure it ends
     * @return the channel; VIP_INVALID_PARAMETER: an option is out of range, or the VI is not as
     *         vi_options() says; VIP_TIMEOUT: the peer makes no channel; VIP_REJECT: it makes
     *         another one
     */
    [[nodiscard]] static Expected<MessageChannel> create(
        const Nic& nic, Vi vi, const MessageChannelOptions& options = {}) {
        if (options.registrations != nullptr && !*options.registrations)
            return wrong("registrations is a cache that was moved from");
        const auto status = vi.status();
        if (!status) return std::unexpected(status.error());
        const auto credits = vi.credits();
        if (!credits) return std::unexpected(credits.error());
        const VIP_VI_ATTRIBUTES& attributes = status->attributes;
        if (status->state != VIP_STATE_CONNECTED)
            return std::unexpected(Error(VIP_INVALID_STATE, "MessageChannel::create",
                                         "the VI is not connected. Connect it first"));
        if (!credits->agreed || attributes.EnableRdmaWrite == VIP_FALSE ||
            attributes.EnableRdmaRead == VIP_FALSE)
            return wrong("the VI has no credits or no RDMA. Make both with vi_options()");
        if (attributes.MaxTransferSize < 4096)
            return wrong("the VI's messages are too short. Make both with vi_options()");
        const std::size_t lines = options.ring_bytes / sizeof(detail::StoreLine);
        if (!std::has_single_bit(options.ring_bytes) || lines < detail::StoreRing::fewest_lines ||
            lines > detail::StoreRing::most_lines || options.receives < 4 ||
            options.receives > 1000)
            return wrong("ring_bytes or receives is out of range. See MessageChannelOptions");
        MessageChannelOptions set = options;
        set.stores_max = std::min<std::size_t>(
            options.stores_max, detail::StoreRing::longest_in(static_cast<std::uint32_t>(lines)));
        set.message_max = std::min<std::size_t>(
            options.message_max, attributes.MaxTransferSize - sizeof(detail::ChannelFrame));
        return make(nic, std::move(vi), set, attributes.MaxTransferSize);
    }

    // ---- Sending ----

    /**
     * Sends a message. On failure it was not sent, or the channel has ended.
     * @param bytes    as many as there are, also none; the program's again on return
     * @param timeout  for the peer to make room or take a large message. VIP_TIMEOUT: nothing was
     *                 sent, but when a large one had been announced: then it is the channel's
     *                 end, and later calls return VIP_INVALID_STATE
     */
    Expected<void> send(std::span<const std::byte> bytes,
                        std::chrono::milliseconds timeout = forever) {
        return end_->send(bytes, timeout);
    }

    // ---- Receiving ----

    /** @return the length of the next message, or nothing if none has come. Never sleeps. */
    Expected<std::optional<std::size_t>> next() {
        if (end_->look()) return end_->next_length();
        if (const Error* const why = end_->ended()) return std::unexpected(*why);
        return std::nullopt;
    }
    /** Waits for the next message, and leaves it. @return its length; VIP_TIMEOUT */
    Expected<std::size_t> wait(std::chrono::milliseconds timeout = forever) {
        const auto come = end_->wait(timeout);
        if (!come) return std::unexpected(come.error());
        return end_->next_length();
    }
    /**
     * Waits for the next message and takes it.
     * @param room     for it; the rest stays as it is. VIP_ERROR_RESOURCE: it is longer, and is
     *                 still the next one: ask wait() for its length
     * @param timeout  until it begins to come; VIP_TIMEOUT when it is over. What has begun and does
     *                 not come whole within MessageChannelOptions::transfer_timeout is VIP_TIMEOUT,
     *                 too, and the channel's end: later calls return VIP_INVALID_STATE
     * @return its length
     */
    Expected<std::size_t> receive(std::span<std::byte> room,
                                  std::chrono::milliseconds timeout = forever) {
        const auto come = end_->wait(timeout);
        if (!come) return std::unexpected(come.error());
        return take(room);
    }
    /** As receive(), if a message has begun to come; else nothing. May sleep only while a message
     *  that has begun comes on. */
    Expected<std::optional<std::size_t>> try_receive(std::span<std::byte> room) {
        const auto there = next();
        if (!there) return std::unexpected(there.error());
        if (!*there) return std::nullopt;
        const auto length = take(room);
        if (!length) return std::unexpected(length.error());
        return *length;
    }

    // ---- About it ----

    /** Ends it, with the connection: calls of other threads that wait return VIP_INVALID_STATE, and
     *  so does every later one. Any thread; the object must live until it returns. */
    void stop() noexcept { end_->stop(); }

    /** The longest message that goes by stores; 0: none does. */
    std::size_t stores_max() const noexcept { return end_->stores_max(); }
    /** The longest message that goes as one of the VI; what is longer goes by RDMA. */
    std::size_t message_max() const noexcept { return end_->message_max(); }
    /** Whether the two share memory. */
    bool stores() const noexcept { return end_->stores(); }
    /** What it has done so far. */
    const ChannelCounts& counts() const noexcept { return end_->counts(); }
    /** The connection; not to be used for messages. */
    const Vi& vi() const noexcept { return end_->vi(); }

private:
    explicit MessageChannel(std::unique_ptr<detail::ChannelEnd> end) noexcept
        : end_(std::move(end)) {}

    static std::unexpected<Error> wrong(const char* why) {
        return std::unexpected(Error(VIP_INVALID_PARAMETER, "MessageChannel::create", why));
    }
    static Expected<MessageChannel> make(const Nic& nic, Vi&& vi,
                                         const MessageChannelOptions& options,
                                         std::size_t max_transfer_bytes) {
        using detail::ChannelEnd;
        constexpr std::uint32_t frame = sizeof(detail::ChannelFrame);
        auto all = MemoryRegion::all(nic);
        if (!all) return std::unexpected(std::move(all.error()));
        auto incoming = BufferPool::create(
            nic, {.buffers = options.receives + ChannelEnd::spare_receives,
                  .size = frame + static_cast<std::uint32_t>(options.message_max)});
        if (!incoming) return std::unexpected(std::move(incoming.error()));
        auto outgoing = BufferPool::create(nic, {.buffers = ChannelEnd::sends, .size = frame});
        if (!outgoing) return std::unexpected(std::move(outgoing.error()));
        auto end =
            std::make_unique<ChannelEnd>(nic.handle(), std::move(vi), options, std::move(*all),
                                         std::move(*incoming), std::move(*outgoing));
        const auto begun = end->begin(nic, max_transfer_bytes);
        if (!begun) return std::unexpected(begun.error());
        return MessageChannel(std::move(end));
    }
    Expected<std::size_t> take(std::span<std::byte> room) {
        const std::size_t length = end_->next_length();
        if (length > room.size())
            return std::unexpected(Error(VIP_ERROR_RESOURCE, "MessageChannel::receive",
                                         "the next message has " + std::to_string(length) +
                                             " bytes. Ask wait() for its length"));
        const auto taken = end_->take(room.first(length));
        if (!taken) return std::unexpected(taken.error());
        return length;
    }

    std::unique_ptr<detail::ChannelEnd> end_;
};

}  // namespace via
