#include "descriptors.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <cstring>

#include "connection.hpp"
#include "epoll_set.hpp"
#include "notes.hpp"

namespace via::sockets {

constinit std::array<Entry, descriptors_max> descriptors{};
constinit std::atomic<int> highest{0};

namespace {

constinit std::atomic<Arena*> family{nullptr};
constinit std::atomic<bool> failed{false};
constinit std::atomic<bool> stopped{false};
constinit std::atomic<pid_t> process{0};
constinit Lock arena_lock{};
constinit std::atomic<bool> helper_started{false};

Options read_options() {
    Options told;
    const char* text = secure_getenv("OPENVIA_SOCKETS");
    std::string rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
        const std::size_t cut = rest.find(' ');
        const std::string word = rest.substr(0, cut);
        rest = cut == std::string::npos ? "" : rest.substr(cut + 1);
        if (word == "off") told.off = true;
        if (word == "no-epoll") told.epoll = false;
        if (word.starts_with("only=")) told.only = word.substr(5);
        if (word.starts_with("not=")) told.without = word.substr(4);
        if (word.starts_with("after="))
            told.after = static_cast<std::uint32_t>(std::strtoul(word.c_str() + 6, nullptr, 10));
        if (word.starts_with("spin="))
            told.spin_ns = std::strtoull(word.c_str() + 5, nullptr, 10) * 1000;
    }
    return told;
}

bool names(const std::string& ports, std::uint16_t port) {
    return ("," + ports + ",").find("," + std::to_string(port) + ",") != std::string::npos;
}

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
}

void after_fork_in_child() {
    process.store(getpid());
    forget_thread_number();
    Arena::renew_after_fork();
    EpollSet::renew_after_fork();
    forget_left_pipes();
    arena_lock.let_go();
    for_sockets([](int, Entry& entry) {
        entry.sends.store(0);
        entry.receives.store(0);
        entry.busy.store(false);
        entry.entered.store(false);
    });
    helper_started.store(false);
    if (Arena* const arena = family.load()) arena->enter();
}

void leave_process() {
    if (is_borrowed()) return;
    for_counted([](int fd, Entry&) { closing(fd); });
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
    }
    return nullptr;
}

}  // namespace

bool start_helper() {
    Arena* const arena = family.load();
    if (arena == nullptr) return false;
    if (helper_started.load(std::memory_order_relaxed) || helper_started.exchange(true))
        return true;
    sigset_t all;
    sigset_t former;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &former);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const bool begun = pthread_create(&thread, &attributes, help_peers, arena) == 0;
    if (!begun) helper_started.store(false);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &former, nullptr);
    return begun;
}

namespace {

[[gnu::constructor]] void begin() {
    load_real();
    process.store(getpid());
    pthread_atfork(before_fork, nullptr, after_fork_in_child);
    if (active() && is_written_in_go()) stop(Reason::own_calls);
}
[[gnu::destructor]] void end_of_program() { leave_process(); }

void forget(Entry& entry) {
    detach(entry);
    entry.stream.store(nullptr);
    entry.kind.store(Kind::other);
}

}  // namespace

void call_for_help(std::uint64_t arena) {
    const HeldArena its = Arena::open(arena);
    if (its == nullptr) return;
    its->head().calls_for_help.fetch_add(1);
    real().syscall(SYS_futex, &its->head().calls_for_help, FUTEX_WAKE, 1 << 30);
}

void leave() { leave_process(); }

const Options& options() {
    static const Options* const told = new Options(read_options());
    return *told;
}

bool wanted(const Ends& ends) {
    const Options& told = options();
    const auto either = [&](const std::string& ports) {
        return names(ports, ends.local.port) || names(ports, ends.remote.port);
    };
    return (told.only.empty() || either(told.only)) && !either(told.without);
}

bool active() { return !stopped.load(std::memory_order_relaxed) && !options().off; }

bool is_borrowed() { return process.load() != real().syscall(SYS_getpid); }

void stop(Reason reason) {
    if (stopped.exchange(true)) return;
    if (!is_borrowed()) say_why(reason);
    for_sockets([&](int fd, Entry& entry) { hand_back(fd, entry, reason); });
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

bool attach(Entry& entry, std::uint64_t arena_id, std::uint64_t offset) {
    HeldArena arena = Arena::open(arena_id);
    if (arena == nullptr) return false;
    Pipe* const pipe = arena->at<Pipe>(offset);
    if (pipe->magic != Pipe::right_magic) return false;
    entry.pipe_arena.store(arena.get());
    Pipe* none = nullptr;
    if (entry.pipe.compare_exchange_strong(none, pipe)) arena.release();  // until detach()
    start_helper();
    return true;
}

void detach(Entry& entry) {
    Pipe* const pipe = entry.pipe.exchange(nullptr);
    if (pipe != nullptr) LetGo()(entry.pipe_arena.load());
    entry.entered.store(false);
}

Pipe* pipe_of(Entry& entry) {
    if (Pipe* const pipe = entry.pipe.load(std::memory_order_acquire)) return pipe;
    const Stream* const stream = entry.stream.load(std::memory_order_acquire);
    if (stream == nullptr) return nullptr;
    const std::uint64_t offset = stream->pipe.load();
    if (offset == 0) return nullptr;
    if (!attach(entry, stream->pipe_arena.load(), offset)) return nullptr;
    return entry.pipe.load();
}

Stream* share(int fd, Entry& entry, Reason reason) {
    if (Stream* const there = entry.stream.load()) return there;
    Arena* const arena = own_arena();
    const std::uint64_t offset = arena == nullptr ? 0 : arena->allocate(sizeof(Stream));
    if (offset == 0) {
        entry.kind.store(Kind::other);
        return nullptr;
    }
    Stream* const made = arena->at<Stream>(offset);
    made->holders.store(1);
    made->side = entry.kind.load() == Kind::accepted;
    made->process = static_cast<std::uint32_t>(process.load());
    made->descriptor = static_cast<std::uint32_t>(fd);
    made->reason.store(static_cast<std::uint32_t>(reason));
    entry.stream.store(made);
    return made;
}

void opened(int fd, Kind kind) {
    if (static_cast<unsigned>(fd) >= descriptors_max || !active()) return;
    Entry& entry = descriptors[static_cast<unsigned>(fd)];
    int seen = highest.load();
    while (seen <= fd && !highest.compare_exchange_weak(seen, fd + 1)) {
    }
    if (entry.kind.load() != Kind::other) forget(entry);  // closed past us
    entry.calls.store(0);
    entry.search_at = 0;
    entry.sends.store(0);
    entry.receives.store(0);
    entry.in_epoll.store(false);
    entry.busy.store(false);
    entry.looked.store(0);
    entry.kind.store(kind);
}

void before_program(bool ends_this_one) {
    const int error = errno;
    const bool borrowed = is_borrowed();
    for_counted([&](int fd, Entry& entry) {
        const int flags = real().fcntl(fd, F_GETFD);
        if (flags < 0) return;
        if ((flags & FD_CLOEXEC) == 0) {
            if (entry.kind.load() != Kind::plain) hand_back(fd, entry, Reason::exec);
        } else if (ends_this_one && !borrowed) {
            if (pipe_of(entry) != nullptr && entry.end().pipe().state() == stored)
                look_at_kernel(fd, entry.end());
            if (Stream* const stream = entry.stream.load()) stream->holders.fetch_sub(1);
        }
    });
    if (ends_this_one && !borrowed)
        if (Arena* const arena = family.load()) arena->leave();
    errno = error;
}

void after_failed_program() {
    const int error = errno;
    if (!is_borrowed()) {
        for_counted([](int fd, Entry& entry) {
            Stream* const stream = entry.stream.load();
            if (stream != nullptr && (real().fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0)
                stream->holders.fetch_add(1);
        });
        if (Arena* const arena = family.load()) arena->enter();
    }
    errno = error;
}

void closing(int fd) {
    if (static_cast<unsigned>(fd) >= descriptors_max) return;
    Entry& entry = descriptors[static_cast<unsigned>(fd)];
    if (entry.kind.load() == Kind::other || is_borrowed()) return;
    const int error = errno;
    if (EpollSet* const set = entry.set.exchange(nullptr)) EpollSet::close(set);
    if (entry.in_epoll.load()) EpollSet::forget_everywhere(fd);
    Stream* const stream = entry.stream.load();
    if (stream != nullptr && stream->holders.fetch_sub(1) == 1) {
        if (pipe_of(entry) != nullptr) say_goodbye(fd, entry);
        Arena* const arena = own_arena_if_made();
        if (arena != nullptr) {
            if (stream->registered.load() != 0) arena->remove(*stream);
            arena->release(arena->offset_of(stream), sizeof(Stream));
        }
    }
    forget(entry);
    errno = error;
}

void copied(int fd, int copy) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr || is_borrowed() || copy < 0 || copy == fd) return;
    const int error = errno;
    if (entry->sends.load() + entry->receives.load() != 0 && pipe_of(*entry) == nullptr)
        hand_back(fd, *entry, Reason::shared);
    if (Stream* const stream = share(fd, *entry, Reason::shared)) {
        if (copy >= descriptors_max) {
            hand_back(fd, *entry, Reason::shared);
        } else {
            opened(copy, entry->kind.load());
            stream->holders.fetch_add(1);
            descriptors[static_cast<unsigned>(copy)].stream.store(stream);
        }
    }
    errno = error;
}

}  // namespace via::sockets
