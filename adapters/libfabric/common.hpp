// SPDX-License-Identifier: Apache-2.0
// What every part of the provider needs: libfabric's headers, answers, tables' empty places.
#pragma once

#include <via/via.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <system_error>
#include <utility>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

namespace via::fabric {

/// What libfabric was given; for its log and its parameters.
extern fi_provider provider;

/// The bytes of a program's parameter and of ours that may go along with connecting.
inline constexpr std::size_t connect_data_max = VIA_PRIVATE_DATA_MAX;

/// Fills the place of any operation that there is not: -FI_ENOSYS. libfabric's inline functions
/// call through their tables without a look.
struct Unsupported {
    template <class Result, class... Arguments>
    using Function = Result (*)(Arguments...);
    template <class Result, class... Arguments>
    constexpr operator Function<Result, Arguments...>() const {
        return [](Arguments...) -> Result { return static_cast<Result>(-FI_ENOSYS); };
    }
};
inline constexpr Unsupported unsupported;

/// The kernel refuses a call that an object cannot be without; the log has said which and why.
struct Refused {
    int error;
};
/// Says with errno's words that `call` was refused; to be thrown, or -error to be answered.
Refused refused(fi_log_subsys where, const char* call) noexcept;

/// Runs `work`, which answers an error code; no exception crosses into C.
template <class Work>
auto guarded(Work&& work) noexcept -> decltype(work()) {
    using Answer = decltype(work());
    try {
        return std::forward<Work>(work)();
    } catch (const std::bad_alloc&) {
        return static_cast<Answer>(-FI_ENOMEM);
    } catch (const Refused& call) {
        return static_cast<Answer>(-call.error);
    } catch (const std::system_error&) {
        return static_cast<Answer>(-FI_EAGAIN);
    } catch (...) {
        return static_cast<Answer>(-FI_EOTHER);
    }
}

/// What fi_control() asks of a queue with that descriptor to wait on; -1: it has none.
int tell_wait_object(int descriptor, int command, void* argument) noexcept;

/// What fi_cq_strerror() and fi_eq_strerror() answer: `text`, also copied to `buffer` as far as it
/// goes. Neither need be there.
const char* tell_text(const char* text, char* buffer, std::size_t length) noexcept;

/// Called before a NIC is opened: from here on this is the process that uses them.
void remember_process() noexcept;
/// A byte in memory that a fork wipes; nullptr: no NIC was opened yet.
extern std::atomic<const std::uint8_t*> process_mark;
/// True in a child that was forked since. Our threads are not there, and nothing that it inherited
/// may be touched, or closed.
inline bool forked() noexcept {
    const std::uint8_t* const mark = process_mark.load(std::memory_order_relaxed);
    return mark != nullptr && *mark == 0;
}

/// A positive FI_E... for a return code of VIPL.
int error_of(VIP_RETURN code) noexcept;
/// A positive FI_E... for the error bits of a descriptor's status.
int error_of_status(VIP_UINT32 status) noexcept;

/// A lock held for a few instructions and polls, on the data path. There may be more threads than
/// processors, and who holds it may lose its processor. It would find the lock free again before
/// those that wait for it run, each time, so it lets them run first.
class SpinLock {
public:
    void lock() noexcept {
        if (locked_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
            wait_and_lock();
    }
    void unlock() noexcept {
        locked_.store(0, std::memory_order_release);
        if (waiting_.load(std::memory_order_relaxed) != 0) [[unlikely]]
            give_way();
    }

private:
    void wait_and_lock() noexcept;
    void give_way() noexcept;
    std::atomic<std::uint32_t> locked_{0};
    std::atomic<std::uint32_t> waiting_{0};  ///< who has looked long enough to want more than that
};

/// Holds a lock where there is a need for it: programs say which calls they never make at once.
class HeldIf {
public:
    HeldIf(bool needed, SpinLock& lock) noexcept : lock_(needed ? &lock : nullptr) {
        if (lock_ != nullptr) lock_->lock();
    }
    ~HeldIf() {
        if (lock_ != nullptr) lock_->unlock();
    }
    HeldIf(const HeldIf&) = delete;
    HeldIf& operator=(const HeldIf&) = delete;

private:
    SpinLock* const lock_;
};

/// Before a lock that polls are made under: these give the processor away when it is free again.
class YieldsLater {
public:
    explicit YieldsLater(bool does) noexcept : does_(does) {
        if (does_) ViaPutOffRests();
    }
    ~YieldsLater() {
        if (does_) ViaTakeRests();
    }
    YieldsLater(const YieldsLater&) = delete;
    YieldsLater& operator=(const YieldsLater&) = delete;

private:
    const bool does_;
};

/// How many objects stand on this one; it may not be closed before them.
class Users {
public:
    void add() noexcept { ++count_; }
    void remove() noexcept { --count_; }
    bool any() const noexcept { return count_ != 0; }

private:
    std::atomic<int> count_{0};
};

}  // namespace via::fabric
