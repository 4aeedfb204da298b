// One round of work after another: engine and devices of a NIC, brought together by turn().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/address.hpp"
#include "base/atomic.hpp"
#include "base/counters.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "device/device.hpp"
#include "engine/engine.hpp"
#include "memory/table.hpp"
#include "memory/translation_cache.hpp"
#include "nic/absent_device.hpp"
#include "nic/attendant.hpp"
#include "nic/completion_queues.hpp"
#include "nic/devices.hpp"
#include "nic/path.hpp"
#include "nic/shared_segments.hpp"
#include "nic/turn_lock.hpp"
#include "queue/completion_queue.hpp"

namespace via::nic {

/// Why no VI can be had over that device; nullptr: it fits.
const char* misfit(device::Device& device);

/// What one turn did.
struct Turn {
    std::uint32_t received = 0;  ///< frames; what is received leaves what is sent its share
    std::uint32_t sent = 0;
    bool progress = false;  ///< something completed or changed its state
    bool more = false;      ///< the bound was met: there is more to do
    std::uint32_t frames() const { return received + sent; }
};

/// Owns the engine, its memory table, the devices, and the turn in which they meet. Calls that
/// change anything are made under the turn.
class Turns {
public:
    /// Counters and attendant outlive the NIC. `name` is what was opened; `first_generation`
    /// differs between NICs, so that handles of one never fit another.
    Turns(std::string name, const NicLimits& limits, Counters& counters, Attendant& attendant,
          std::uint32_t first_generation);

    /// One that fits (misfit()).
    void add_device(std::unique_ptr<device::Device> device);

    /// The NIC's own table is a cache of that shape from now on. Called once, before any device is
    /// added; the loader outlives the NIC and is called under the turn.
    void cache_translations(const memory::CacheShape& shape, memory::LineLoader& loader);

    const std::string& name() const { return name_; }
    const NicLimits& limits() const { return limits_; }
    engine::Engine& engine() { return engine_; }
    memory::MemoryTable& memory() { return memory_; }
    /// nullptr: the NIC's table holds every page of every region.
    memory::TranslationCache* translations() { return translations_.get(); }
    const memory::MemoryTable& memory() const { return memory_; }
    Counters& counters() { return counters_; }
    Devices& devices() { return devices_; }

    // The turn ------------------------------------------------------------------------------------
    /// One round of work, bounded by the limits; the caller holds the turn and ends it with
    /// end_turn(). Order: doorbells, what devices received, time, what is to be sent.
    /// The answer stands until the next one.
    const Turn& turn(Time now);
    /// Releases the turn, wakes whom it must, and rechecks the doorbells.
    /// `polling`: the program's own poll, which an agent asleep must hear of.
    [[gnu::always_inline]] void end_turn(bool polling = false) {
        finish_turn(polling);
        if (doorbells_.any()) [[unlikely]]
            answer_late(polling);
    }
    void take_turn() { lock_.take(); }
    bool try_take_turn() { return lock_.try_take_rarely(); }
    /// Sets bits of attention(). Progress made before is seen by the caller's next look, later one
    /// sees the bits. Not while holding the turn, or a lock that who holds it waits for.
    void call_for_attention(std::uint32_t bits) {
        attention_.fetch_or(bits);
        atomic_fence_after_rmw();
        if (!lock_.is_anothers()) return;
        take_turn();
        end_turn();
    }

    /// One try at a turn by the program's own thread. True when the turn made progress.
    bool poll();
    /// The same, but waits for the turn first: for posts on VIs that are not connected.
    void poll_surely();

    /// Runs `control` under the turn, then one round of work, so that what it caused goes out.
    template <class Control>
    auto with_turn(Control control) {
        lock_.take();
        struct End {
            Turns& turns;
            ~End() {
                turns.deadline_ = turns.engine_.next_deadline();
                turns.turn(turns.now_if_needed());
                turns.end_turn();
            }
        } end{*this};
        return control();
    }

    /// The same for control that causes nothing to be sent: without the round of work.
    template <class Control>
    auto holding_turn(Control control) {
        lock_.take();
        struct End {
            Turns& turns;
            ~End() { turns.end_turn(); }
        } end{*this};
        return control();
    }

    /// Earliest moment at which a turn is due; the caller holds the turn.
    Time next_deadline() const;
    /// True when a turn would find something; the caller holds the turn.
    bool has_work();

    /// Paths that were closed for a violation and are not down yet. While there are any, each frame
    /// is asked whether it is of one.
    std::uint32_t violating_paths() const { return violating_paths_; }

    // Waiting and sleeping (the agent's side) -----------------------------------------------------
    /// Bits of attention(): set by the agent before a full fence and a last look at the work.
    static constexpr std::uint32_t somebody_waits = 1;    ///< for completions, at least
    static constexpr std::uint32_t somebody_listens = 4;  ///< waits for anything but these
    static constexpr std::uint32_t anybody_waits = somebody_waits | somebody_listens;
    static constexpr std::uint32_t agent_sleeps = 2;
    static constexpr std::uint32_t polls_yield = 8;  ///< each that moves nothing
    Atomic<std::uint32_t>& attention() { return attention_; }
    /// Counts polls of the program; stands still when the program does.
    std::uint64_t polls() const { return counters_.get(Counter::polls); }
    /// Tells all peers how we sleep; the caller holds the turn.
    void arm(device::Sleep sleep);
    /// Who arm()ed sleeps until the next deadline, `latest` at the latest, and that is returned. A
    /// turn that brings an earlier one says that work is left. The caller holds the turn.
    Time sleep_until_deadline(Time latest) {
        return sleep_until_ = earlier(latest, next_deadline());
    }
    /// Somebody sleeps so, or did and has not arm()ed anew; for who holds the turn.
    bool is_slept_on() const { return sleep_until_ != Time{}; }
    /// The devices' work that needs system calls; the caller holds the turn.
    void service(Time now);

    /// Ends every connection and lets the devices go; the peers know. Calls that come late find a
    /// NIC without devices. The caller makes sure that nobody waits.
    void close();
    /// The process ends: the devices leave their peers, and nothing goes or comes any more. Calls
    /// find everything as it was, and RDMA to peers' segments goes nowhere, either. False: somebody
    /// has the turn, and nothing happened.
    bool leave();
    /// Who calls this interrupted a turn of its own thread.
    bool interrupts_turn() const { return lock_.is_callers(); }
    HostAddress peer_address(engine::PathId path) const;
    /// Of all devices, as WayReports has it. The caller holds the turn.
    std::size_t report_ways(std::vector<device::Way>& to, std::size_t max);

protected:
    ~Turns();

    /// The engine's time. The clock is read only while it waits for a moment; devices read their
    /// own.
    Time now_if_needed() {
        return deadline_.is_never() ? last_now_ : (last_now_ = attendant_.now());
    }
    enum class Polled : std::uint8_t { not_at_all, empty, with_progress };
    Polled try_poll();
    Polled moved_nothing(Polled how) {
        if ((attention_.load(std::memory_order_relaxed) & polls_yield) != 0) [[unlikely]]
            attendant_.yield();
        return how;
    }
    void send_on(engine::PathId path, Turn& turn);

    std::string name_;
    NicLimits limits_;
    Counters& counters_;
    Attendant& attendant_;
    TurnLock lock_;
    Atomic<std::uint32_t> attention_{0};
    Doorbells<engine::Vi> doorbells_;
    memory::MemoryTable memory_;
    std::unique_ptr<memory::TranslationCache> translations_;
    engine::Engine engine_;
    Devices devices_;
    std::vector<Path> paths_;
    SharedSegments segments_{engine_, paths_};
    CompletionQueues completion_queues_;
    bool work_left_ = false;  ///< by the last turn: a bound was met, or back-pressure without sleep
    bool published_ = false;  ///< this turn published something others may sleep for

private:
    void report_events();
    bool sleeper_is_late();
    void look_for_peers(Time now);
    void take(std::size_t device, device::PathEvent& event);
    void reap_from(std::size_t device);
    void take_events(device::Device& device, std::size_t index);
    void judge(device::Device& device, const device::Frame& frame, engine::PathId id,
               engine::FrameVerdict verdict);
    std::uint32_t take_frame(device::Device& device, std::size_t index, const device::Frame& frame);
    std::uint32_t take_frames(device::Device& device, std::size_t index, std::size_t count,
                              std::uint32_t& turn_bytes);
    bool are_messages(std::size_t count) const;
    void receive_from(device::Device& device, std::size_t index, Turn& turn);
    void turn_rarely(Time now, Turn& turn);
    bool looks_first(Time now);
    void send_on_all(Turn& turn);
    void run_turn(Time now, Turn& turn);
    /// end_turn() but for the doorbells.
    [[gnu::always_inline]] void finish_turn(bool polling) {
        if (engine_.news().any() || published_ || work_left_ || devices_.are_silent() ||
            may_be_late()) [[unlikely]]
            return finish_eventful_turn(polling);
        release_turn(polling ? agent_sleeps : 0);
    }
    [[gnu::noinline]] void finish_eventful_turn(bool polling);
    /// `heard`: by whom, besides those who wait if there was progress.
    [[gnu::always_inline]] void release_turn(std::uint32_t heard) {
        if (std::exchange(progress_seen_, engine_.progress()) != engine_.progress())
            heard |= somebody_waits;
        lock_.release();  // a full fence: who waits now sees our progress, or we see the waiting
        if ((attention_.load(std::memory_order_relaxed) & heard) != 0) [[unlikely]]
            attendant_.attend();
    }
    /// Somebody sleeps until a deadline, and there may be an earlier one now.
    [[gnu::always_inline]] bool may_be_late() const {
        if (!is_slept_on()) return false;
        return deadline_ < sleep_until_ || engine_.next_deadline() < sleep_until_ ||
               devices_.may_have_deadline();
    }
    [[gnu::noinline]] void answer_late(bool polling);
    void pull(Turn& turn);

    AbsentDevice absent_;                ///< of all paths after leave()
    std::uint32_t violating_paths_ = 0;  ///< of them
    FoundPaths found_;
    device::PathEvent event_{};  ///< the one being taken
    std::array<device::Frame, 16> frames_;
    std::array<device::Reaped, 64> reaped_;
    Time sleep_until_{};  ///< when the sleeper looks by itself; none: nobody sleeps
    Turn turn_;           ///< the last one
    std::uint64_t progress_seen_ = 0;
    Time last_now_{};
    Time deadline_ = Time::never();  ///< the engine's, after the last turn or call
    Time late_for_ = Time::never();  ///< the last of these that a turn found passed
    Time late_since_{};              ///< when that was
};

}  // namespace via::nic
