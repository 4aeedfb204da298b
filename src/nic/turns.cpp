#include "nic/turns.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "engine/fast_path.hpp"
#include "wire/frame.hpp"

namespace via::nic {

namespace {

/// How long a request whose time is up may wait for a look at what came while nobody looked.
constexpr Duration last_look_max = milliseconds(100);

/// A listener beyond a network that says nothing stands still, or a firewall lets its host's port
/// through alone. Who asks without end and has no call that waits (ViaConnectRequest: libfabric's
/// provider) is told so and may ask again.
Status what_it_means(const engine::Vi& vi, Status status, const device::Device& device) {
    const bool asks_for_ever = vi.insists && vi.connect_deadline.is_never();
    return status == Status::timeout && asks_for_ever && !device.capabilities().lossless
               ? Status::not_reachable
               : status;
}

}  // namespace

Turns::Turns(std::string name, const NicLimits& limits, Counters& counters, Attendant& attendant,
             std::uint32_t first_generation)
    : name_(std::move(name)),
      limits_(limits),
      counters_(counters),
      attendant_(attendant),
      memory_(limits.regions_max, limits.protection_tags_max, memory::tag_generation_max,
              limits.windows_max),
      engine_(limits, memory_, counters, first_generation),
      completion_queues_(limits.completion_queues_max, first_generation & ~1U) {
    VIA_ASSERT(limits.paths_max <= 1U << paths_per_device_bits);
}

Turns::~Turns() = default;

/// The engine sends each thing once, but for what it is told was lost, and takes the messages of a
/// reliable VI as they were sent.
const char* misfit(device::Device& device) {
    const device::Capabilities& can = device.capabilities();
    const bool retransmits = device.retransmission() != nullptr;
    if (!can.ordered)
        return "frames that must arrive may come in another order than they were sent";
    if (!can.lossless && !retransmits) return "frames are lost, and nothing says which";
    if (can.lossless && retransmits) return "no frame is lost, and yet lost ones are sent again";
    if (can.header_max < wire::header_length_remote) return "frames have no room for a header";
    if (can.payload_max < wire::connect_payload_max)
        return "frames have no room for a request with its private data";
    return nullptr;
}

void Turns::add_device(std::unique_ptr<device::Device> device) {
    VIA_ASSERT(misfit(*device) == nullptr);
    if (device::SegmentSharing* const sharing = device->sharing())
        sharing->expect_offers(
            [this, index = devices_.size()](device::PathId path, std::uint64_t cookie) {
                return engine_.segments().expects_attachment(path_id(index, path), cookie);
            });
    devices_.add(std::move(device));
}

void Turns::cache_translations(const memory::CacheShape& shape, memory::LineLoader& loader) {
    VIA_ASSERT(devices_.empty() && translations_ == nullptr);
    translations_ = std::make_unique<memory::TranslationCache>(shape, memory_, counters_, loader);
    engine_.set_translations(*translations_);
}

// The turn ----------------------------------------------------------------------------------------

[[gnu::noinline]] void Turns::take(std::size_t index, device::PathEvent& event) {
    device::Device& device = devices_[index];
    const engine::PathId id = path_id(index, event.path);
    VIA_ASSERT(event.kind == device::PathEventKind::unresolved || is_path(event.path));
    if (event.kind == device::PathEventKind::down) {
        engine_.on_path_down(id);
        if (id < paths_.size()) {
            VIA_ASSERT(!paths_[id].violates || violating_paths_ != 0);
            if (paths_[id].violates) --violating_paths_;
            paths_[id] = {};
        }
        found_.forget(id);
        segments_.path_went(id);
        return;
    }
    if (event.kind == device::PathEventKind::attached) {
        engine_.segments().on_attached(id, event.cookie, std::move(event.attachment));
        return;
    }
    if (event.kind == device::PathEventKind::changed) {
        engine_.on_path_changed(id, event.payload_max);
        return;
    }
    if (event.kind != device::PathEventKind::unresolved &&
        (id >= paths_.size() || paths_[id].device == nullptr)) {
        if (id >= paths_.size()) paths_.resize(id + 1);
        device::SmallSends* const small = device.small_sends();
        paths_[id] = {&device, small != nullptr ? small : &absent_, event.path, false, false};
        engine_.on_path_up(
            id, event.payload_max != 0 ? event.payload_max : device.capabilities().payload_max,
            device.peer_address(event.path), devices_.drops(index));
    }
    if (event.kind == device::PathEventKind::up) return;
    const engine::PathId found = index == 0 ? found_.take(event.cookie) : engine::no_path;
    engine::Vi* vi = engine_.vi_at(static_cast<std::uint32_t>(event.cookie & 0xFFFF));
    if (vi == nullptr || vi->number() != event.cookie) return;  // it gave up meanwhile
    if (event.kind == device::PathEventKind::resolved && index == 0) {
        engine_.connecting().connect_on(*vi, id);
    } else if (event.kind == device::PathEventKind::resolved) {
        found_.add(event.cookie, id);
        devices_.front().resolve(vi->remote_address, event.cookie);
    } else if (found != engine::no_path) {
        engine_.connecting().connect_on(*vi, found);
    } else if (event.status != Status::timeout && index + 1 < devices_.size()) {
        devices_[index + 1].resolve(vi->remote_address, event.cookie);
    } else {
        engine_.connecting().not_found(*vi, what_it_means(*vi, event.status, device));
    }
}

void Turns::look_for_peers(Time now) {
    Discriminator discriminator;
    while (engine_.connecting().attempts().next_forgotten(discriminator))
        devices_.unlisten(discriminator);
    while (engine::Vi* vi = engine_.connecting().attempts().next_search(now)) {
        // Of those with equal addresses one waits, who finds the name free, and the others ask.
        // Looked at each time: that one meets another, or gives up, and then nobody waits.
        if (vi->peer && vi->local_address == vi->remote_address &&
            !engine_.connecting().is_awaited(vi->local_address, vi->remote_address) &&
            devices_.listen(vi->local_address.discriminator) == Status::success)
            engine_.connecting().set_listening(*vi);
        else if (!devices_.empty())  // the process ends: nobody is found, nor said not to be there
            devices_.front().resolve(vi->remote_address, vi->number());
    }
}

HostAddress Turns::peer_address(engine::PathId path) const {
    if (path >= paths_.size() || paths_[path].device == nullptr) return {};
    return paths_[path].device->peer_address(paths_[path].local);
}

/// What came of the frames that a lossy medium carried.
void Turns::reap_from(std::size_t index) {
    std::size_t count = 0;
    do {
        count = devices_.retransmission(index).reap(reaped_);
        for (std::size_t n = 0; n < count; ++n)
            engine_.outbound().on_reaped(path_id(index, reaped_[n].path), reaped_[n].number,
                                         reaped_[n].lost);
    } while (count == reaped_.size());
}

/// What the engine says of a frame that it did not just take.
[[gnu::noinline]] void Turns::judge(device::Device& device, const device::Frame& frame,
                                    engine::PathId id, engine::FrameVerdict verdict) {
    if (verdict == engine::FrameVerdict::refused) attendant_.refused(engine_.last_refusal());
    if (verdict == engine::FrameVerdict::pulled || verdict == engine::FrameVerdict::not_pulled)
        if (device::Pulling* const pulling = device.pulling())  // or a peer answers unasked
            pulling->pulled(frame.path, verdict == engine::FrameVerdict::pulled);
    if (verdict != engine::FrameVerdict::hostile) return;
    VIA_ASSERT(is_path(frame.path) && !paths_[id].violates);
    paths_[id].violates = true;
    ++violating_paths_;
    device.close_for_violation(frame.path, engine_.last_refusal());
}

/// The frames that the device has just lent. Returns how many they are; adds to `turn_bytes`.
[[gnu::noinline, gnu::hot]] std::uint32_t Turns::take_frames(device::Device& device,
                                                             std::size_t index, std::size_t count,
                                                             std::uint32_t& turn_bytes) {
    std::uint64_t bytes = 0;  // of common messages
    std::uint32_t messages = 0;
    std::uint32_t others = 0;  // bytes of other frames
    auto taken = static_cast<std::uint32_t>(count);
    for (device::Frame& frame : std::span(frames_).first(count)) {
        if (wire::is_whole_send(frame.bytes, frame.length) && violating_paths_ == 0) [[likely]] {
            const std::uint32_t length =
                engine_.take_common(path_id(index, frame.path), frame.bytes, frame.length,
                                    frame.payload, frame.payload_length);
            if (length != engine::Engine::not_common) [[likely]] {
                ++messages;
                bytes += length;
                continue;
            }
        }
        others += take_frame(device, index, frame);
        taken += frame.count - 1;
        frame.count = 1;  // most devices leave it alone
    }
    if (messages != 0) engine_.count_received(messages, bytes);
    counters_.add(Counter::frames_received, taken);
    if (device.release()) published_ = true;  // a peer may wait for the room
    turn_bytes += static_cast<std::uint32_t>(bytes) + others;
    return taken;
}

[[gnu::noinline]] std::uint32_t Turns::take_frame(device::Device& device, std::size_t index,
                                                  const device::Frame& frame) {
    VIA_ASSERT(frame.length <= device::Frame::inline_max);
    const engine::PathId id = path_id(index, frame.path);
    if (id >= paths_.size() || paths_[id].violates) return 0;
    const engine::FrameVerdict verdict =
        engine_.on_frame(id, {frame.bytes, frame.length, frame.payload, frame.payload_length,
                              frame.count, frame.payloads});
    if (verdict != engine::FrameVerdict::taken) judge(device, frame, id, verdict);
    return (frame.length + frame.payload_length) * frame.count;
}

/// Of the frames that a device has just lent: somebody may answer them.
[[gnu::always_inline]] inline bool Turns::are_messages(std::size_t count) const {
    return count != 0 && std::all_of(frames_.begin(), frames_.begin() + count, [](const auto& of) {
               return wire::is_of_message(of.bytes, of.length);
           });
}

[[gnu::always_inline]] inline void Turns::receive_from(device::Device& device, std::size_t index,
                                                       Turn& turn) {
    std::uint32_t bytes = 0;
    do {  // once at least: another device may have more than a turn's share, always
        const std::size_t count = device.receive(frames_);
        // First, or a peer that leaves overtakes it; but the answer to a message goes before.
        if (devices_.may_have_reaped(index) && !are_messages(count)) reap_from(index);
        if (count == 0) return;
        const std::uint32_t taken = take_frames(device, index, count, bytes);
        turn.received += taken;
        if (taken < frames_.size()) return;
    } while (turn.received < limits_.turn_frames_max && bytes < limits_.turn_bytes_max);
    turn.more = true;
}

void Turns::send_on(engine::PathId id, Turn& turn) {
    Path& path = paths_[id];
    device::Device& device = *path.device;
    const std::uint32_t large_min = device.capabilities().large_length_min;
    const bool lossless = device.capabilities().lossless;
    engine::FrameShape shape;
    std::uint32_t bytes = 0;
    std::uint32_t unpublished = 0;
    bool sent = false;
    const auto publish = [&] {
        if (unpublished != 0) device.transmit(path.local);
        unpublished = 0;
    };
    while (engine_.outbound().next_frame(id, shape)) {
        // A long message goes on in the next turn rather than in half a burst.
        if (turn.sent >= limits_.turn_frames_max || bytes >= limits_.turn_bytes_max ||
            (sent && shape.count > limits_.turn_frames_max - turn.sent)) {
            turn.more = true;
            break;
        }
        if (shape.pullable != 0) {
            device::Pulling* const pulling = device.pulling();
            if (pulling != nullptr && pulling->prefers_pull(path.local, shape.pullable))
                engine_.outbound().let_pull(id, shape);
        }
        if (engine_.outbound().goes_direct()) {  // it must not overtake them (VIPL 4.15)
            publish();
            if (published_) device.transmit(path.local);  // small ones
        }
        if (shape.header_length == 0) {
            engine_.outbound().carry_out(id);
            ++turn.sent;
            continue;
        }
        device::FrameSlot slot;
        slot.must_arrive = shape.must_arrive;
        slot.again = shape.again;
        slot.number = shape.number;
        if (shape.count > 1)
            slot.wanted = std::min({shape.count, limits_.turn_frames_max - turn.sent,
                                    1 + (limits_.turn_bytes_max - bytes) / shape.payload_length});
        if (!device.reserve(path.local, shape.header_length, shape.payload_length, slot)) {
            counters_.add(Counter::back_pressure);
            device.set_waiting_for_room(path.local);
            break;
        }
        VIA_ASSERT(slot.count != 0 && slot.count <= slot.wanted);
        engine_.outbound().emit(id, {slot.header, slot.payload, slot.stream, slot.number,
                                     slot.reference, slot.count, slot.stride});
        turn.sent += slot.count;
        bytes += slot.count * shape.payload_length;
        ++unpublished;
        // The first goes at once, and large payloads one by one: the peer takes one while we fill
        // the next. Where frames share packets, the device decides.
        if ((!sent && lossless) || shape.payload_length >= large_min || slot.count > 1 ||
            unpublished == frames_.size())
            publish();
        sent = true;
    }
    publish();
    if (!sent) return;
    published_ = true;
    engine_.outbound().on_transmitted();
}

/// Messages that peers left in their memory for us.
[[gnu::noinline]] void Turns::pull(Turn& turn) {
    std::uint64_t left = limits_.turn_bytes_max;
    while (engine::Vi* vi = left == 0 ? nullptr : engine_.inbound().next_pull()) {
        const Path& path = paths_[vi->path];
        engine::PullPiece piece;
        if (!engine_.inbound().next_piece(*vi, left, piece)) continue;
        device::Pulling* const pulling = path.device->pulling();
        const Status status =
            pulling == nullptr
                ? Status::error_not_supported
                : pulling->pull(path.local, std::span(piece.remote).first(piece.remote_count),
                                std::span(piece.local).first(piece.local_count));
        engine_.inbound().piece_ended(*vi, piece, status);
        left -= piece.bytes;
        ++turn.received;
    }
    if (engine_.inbound().has_pulls()) turn.more = true;
}

/// Path events, the same for any device.
[[gnu::noinline]] void Turns::take_events(device::Device& device, std::size_t index) {
    while (device.next_event(event_)) take(index, event_);
}

/// Who comes late to a request whose time is up takes first what came meanwhile: the answer may be
/// there. But not for ever.
bool Turns::looks_first(Time now) {
    const Time due = engine_.next_deadline();
    if (now < due) return false;
    if (std::exchange(late_for_, due) != due) late_since_ = now;
    return now < late_since_ + last_look_max && devices_.have_work();
}

/// What few turns have to do.
[[gnu::noinline]] void Turns::turn_rarely(Time now, Turn& turn) {
    if (engine_.inbound().has_pulls()) pull(turn);
    if (engine_.segments().has_questions()) segments_.answer_questions();
    const bool first_looks = looks_first(now);
    if (first_looks) turn.more = true;
    engine_.on_time(now, first_looks);
    if (engine_.has_searches(now)) look_for_peers(now);
    engine_.completions().pump();
    if (engine_.shared_receives().anybody_waits()) engine_.credits().grant_waiting();
    engine_.settle();
}

[[gnu::noinline]] void Turns::send_on_all(Turn& turn) {
    for (engine::PathId id = engine_.paths().first_sending(); id != engine::no_path;) {
        const engine::PathId next = engine_.paths().next_sending(id);
        send_on(id, turn);
        id = next;
    }
    VIA_ASSERT(turn.sent <= limits_.turn_frames_max);
    // Those behind the one that took all begin the next turn.
    if (turn.sent >= limits_.turn_frames_max) engine_.paths().rotate_sending();
}

[[gnu::always_inline]] inline void Turns::run_turn(Time now, Turn& turn) {
    if (doorbells_.any()) [[unlikely]]
        doorbells_.answer([this](engine::Vi& vi) { engine_.on_doorbell(vi); });
    for (std::size_t index = 0; index < devices_.size(); ++index) {
        device::Device& device = devices_[index];
        if (devices_.may_have_reaped(index)) [[unlikely]] {
            const std::uint64_t before = engine_.progress();
            reap_from(index);
            if (engine_.progress() != before) continue;  // somebody waits for that
        }
        if (device.may_have_events()) take_events(device, index);
        receive_from(device, index, turn);
    }
    if (engine_.has_rare(now)) [[unlikely]]
        turn_rarely(now, turn);
    if (engine_.paths().sending()) [[unlikely]]
        send_on_all(turn);
    deadline_ = engine_.next_deadline();  // frames and devices may bring one, too
    work_left_ = turn.more;
    turn.progress = engine_.progress() != progress_seen_;
}

const Turn& Turns::turn(Time now) {
    VIA_ASSERT(lock_.is_taken());
    turn_ = {};
    run_turn(now, turn_);
    return turn_;
}

[[gnu::noinline]] void Turns::report_events() {
    engine::ErrorEvent event;
    while (attendant_.wants_reports() && engine_.news().next_event(event)) {
        if (event.completion_queue != nullptr)
            event.completion_queue_name = completion_queues_.name_of(*event.completion_queue);
        attendant_.report(event);
    }
}

void Turns::finish_eventful_turn(bool polling) {
    std::uint32_t heard = polling ? agent_sleeps : 0;
    if (published_) {
        published_ = false;
        if (const std::uint32_t calls = devices_.notify())
            counters_.add(Counter::peers_woken, calls);
    }
    if (engine_.news().any()) [[unlikely]] {
        engine_.connections().flush_late();  // no device reads what was emitted any more
        if (engine_.news().has_event()) report_events();
        if (const auto miss = engine_.news().take_page_miss()) attendant_.missed_by_a_page(*miss);
        while (queue::CompletionQueue* queue = engine_.news().next_signal())
            attendant_.entry_came(*queue);
        while (engine::Backlog* backlog = engine_.news().next_changed())
            attendant_.requests_changed(*backlog);
        if (engine_.news().settle()) heard |= somebody_listens;
    }
    const bool left = (work_left_ && !polling) || (devices_.are_silent() && has_work()) ||
                      (may_be_late() && sleeper_is_late());
    release_turn(heard);
    if (left) attendant_.work_is_left();
}

/// Doorbells that rang while we had the turn, unless another one has it now.
void Turns::answer_late(bool polling) {
    while (doorbells_.any() && lock_.try_take()) {
        turn(now_if_needed());
        finish_turn(polling);
    }
}

/// A deadline came up, of a packet that was sent for instance, before the one that somebody sleeps
/// for. True once.
bool Turns::sleeper_is_late() {
    const Time due = next_deadline();
    if (due >= sleep_until_) return false;
    sleep_until_ = due;
    return true;
}

[[gnu::hot]] Turns::Polled Turns::try_poll() {
    if (!lock_.try_take()) return moved_nothing(Polled::not_at_all);
    counters_.add(Counter::polls);
    Turn turn;
    run_turn(now_if_needed(), turn);
    end_turn(true);
    return turn.progress ? Polled::with_progress : moved_nothing(Polled::empty);
}

bool Turns::poll() { return try_poll() == Polled::with_progress; }

void Turns::poll_surely() {
    lock_.take();
    counters_.add(Counter::polls);
    turn(now_if_needed());
    end_turn();
}

Time Turns::next_deadline() const {
    return earlier(engine_.next_deadline(), devices_.next_deadline());
}

bool Turns::has_work() { return doorbells_.any() || work_left_ || devices_.have_work(); }

void Turns::arm(device::Sleep sleep) {
    VIA_ASSERT(lock_.is_callers());
    for (device::Sleeping* device : devices_.sleeping()) device->arm(sleep);
    sleep_until_ = {};
}

void Turns::service(Time now) {
    VIA_ASSERT(lock_.is_callers());
    for (device::Sleeping* device : devices_.sleeping()) device->service(now);
}

void Turns::close() {
    lock_.take();
    engine_.disconnect_all();
    turn(now_if_needed());
    end_turn();
    lock_.take();
    for (engine::PathId id = 0; id < paths_.size(); ++id)
        if (paths_[id].device != nullptr) engine_.on_path_down(id);
    paths_.clear();
    violating_paths_ = 0;
    devices_.clear();
    segments_.clear();
    lock_.release();
}

std::size_t Turns::report_ways(std::vector<device::Way>& to, std::size_t max) {
    std::size_t count = 0;
    for (const auto& device : devices_)
        if (const device::WayReports* const reports = device->way_reports())
            count += reports->report_ways(to, max);
    return count;
}

bool Turns::leave() {
    if (!lock_.try_take_rarely()) return false;
    for (Path& path : paths_)
        if (path.device != nullptr) {
            path.device = &absent_;
            path.small_sends = &absent_;
        }
    engine_.segments().release_imports();
    devices_.clear();
    lock_.release();
    return true;
}

}  // namespace via::nic
