#include "process.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <cstring>

#include "connection.hpp"
#include "epoll_set.hpp"
#include "notes.hpp"

namespace via::sockets {

namespace {

constinit std::atomic<Arena*> family{nullptr};
constinit std::atomic<bool> failed{false};
constinit std::atomic<bool> stopped{false};
constinit std::atomic<pid_t> process{0};
constinit Lock arena_lock{};
constinit std::atomic<bool> helper_started{false};

/// Submits behind our back, with system calls of its own.
bool has_liburing() {
    void* const library = dlopen("liburing.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) dlclose(library);
    return library != nullptr;
}

/// Its system calls are its own: nothing that it does to a socket passes this library.
bool is_written_in_go() {
    const auto look = [](dl_phdr_info* program, std::size_t, void*) {
        for (std::size_t at = 0; at < program->dlpi_phnum; ++at) {
            const auto& part = program->dlpi_phdr[at];
            if (part.p_type != PT_NOTE) continue;
            const auto* const bytes =
                reinterpret_cast<const char*>(program->dlpi_addr + part.p_vaddr);
            for (std::size_t place = 0; place + sizeof(ElfW(Nhdr)) + 4 <= part.p_filesz;) {
                ElfW(Nhdr) note;
                std::memcpy(&note, bytes + place, sizeof note);
                if (note.n_namesz == 4 && std::memcmp(bytes + place + sizeof note, "Go\0", 4) == 0)
                    return 2;
                const auto padded = [](std::size_t length) { return (length + 3) / 4 * 4; };
                place += sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
            }
        }
        return 1;  // the program itself comes first, and is enough
    };
    return dl_iterate_phdr(look, nullptr) == 2;
}

void say_why(Reason reason) {
    const int error = errno;
    leave_note(
        {static_cast<std::uint32_t>(getpid()), program_invocation_short_name, text_of(reason)});
    errno = error;
}

/// Descriptors of ours are counted for the child before it is there.
void before_fork() {
    if (!active()) return;
    for_counted([](int fd, Entry& entry) {
        if (Stream* const stream = share(fd, entry, Reason::shared)) stream->holders.fetch_add(1);
    });
    SharedSets::before_fork();
}

void after_fork_in_child() {
    process.store(getpid());
    forget_thread_number();
    Arena::renew_after_fork();
    SharedSets::renew_after_fork();
    forget_left_pipes();
    arena_lock.let_go();
    for_sockets([](int, Entry& entry) {
        entry.sends.store(0);
        entry.receives.store(0);
        entry.busy.store(false);
        entry.entered.store(false);
    });
    helper_started.store(false);
    if (Arena* const arena = family.load()) arena->enter_as_child();
}

void leave_process() {
    if (is_borrowed()) return;
    for_counted([](int fd, Entry&) { closing(fd); });
    SharedSets::leave();
    if (Arena* const arena = family.exchange(nullptr)) arena->leave();
    stopped.store(true);
}

/// Sleeps until a peer hands back, and gives it what the program's own calls would.
void* help_peers(void* arena) {
    ArenaHead& head = static_cast<Arena*>(arena)->head();
    std::uint32_t seen = 0;
    for (;;) {
        const std::uint32_t now = head.calls_for_help.load();
        if (now == seen) {
            real().syscall(SYS_futex, &head.calls_for_help, FUTEX_WAIT, seen, nullptr);
            continue;
        }
        seen = now;
        for_sockets([](int fd, Entry& entry) { help_if_wanted(fd, entry); });
        SharedSets::give_up_contested();
    }
    return nullptr;
}

[[gnu::constructor]] void begin() {
    load_real();
    process.store(getpid());
    pthread_atfork(before_fork, nullptr, after_fork_in_child);
    if (active() && is_written_in_go()) stop(Reason::own_calls);
}
[[gnu::destructor]] void end_of_program() { leave_process(); }

}  // namespace

bool start_thread(void* (*does)(void*), void* with) {
    sigset_t all;
    sigset_t former;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &former);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const bool begun = pthread_create(&thread, &attributes, does, with) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &former, nullptr);
    return begun;
}

bool has_helper() { return helper_started.load(); }

bool start_helper() {
    Arena* const arena = family.load();
    if (arena == nullptr) return false;
    if (helper_started.load(std::memory_order_relaxed) || helper_started.exchange(true))
        return true;
    const bool begun = start_thread(help_peers, arena);
    if (begun)
        SharedSets::say_helped();
    else
        helper_started.store(false);
    return begun;
}

void call_for_help(std::uint64_t arena) {
    const HeldArena its = Arena::open(arena);
    if (its == nullptr) return;
    its->head().calls_for_help.fetch_add(1);
    real().syscall(SYS_futex, &its->head().calls_for_help, FUTEX_WAKE, 1 << 30);
}

void leave() { leave_process(); }

bool active() { return !stopped.load(std::memory_order_relaxed) && !options().off; }

bool is_borrowed() { return process.load() != real().syscall(SYS_getpid); }

void stop(Reason reason) {
    if (stopped.exchange(true)) return;
    if (!is_borrowed()) say_why(reason);
    for_sockets([&](int fd, Entry& entry) { hand_back(fd, entry, reason); });
    SharedSets::relinquish_all();
}

Arena* own_arena_if_made() { return family.load(); }

Arena* own_arena() {
    if (Arena* const made = family.load()) return made;
    if (failed.load() || !active()) return nullptr;
    if (!arena_lock.take()) return nullptr;
    if (family.load() == nullptr && !failed.load()) {
        const bool past_us = has_liburing();
        if (past_us) say_why(Reason::uring);
        Arena* const made = past_us ? nullptr : Arena::create();
        family.store(made);
        failed.store(made == nullptr);
    }
    arena_lock.let_go();
    return family.load();
}

}  // namespace via::sockets
