// Who uses an epoll set that several processes have by fork().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace via::sockets {

/// Marks in an epoll set mean something to one process, its owner: who made it, or who has it from
/// an owner that is gone. When another one uses it, too, it is the kernel's from then on. What
/// these processes tell each other lies in a page that they share by fork() alone.
class SetFamily {
public:
    /// By the owner, before a fork. `helped`: it has a thread that gives the set up when it is
    /// contested. false: there is no memory.
    bool begin(bool helped);
    /// This process has the set no more.
    void end() { page_ = nullptr; }
    bool begun() const { return page_ != nullptr; }
    void has_helper() {
        if (page_ != nullptr) page_->helped.store(1);
    }

    /// Of an owner: it ends, or closes the set. Whoever uses it next becomes it.
    void leave();
    /// true: this process is the owner now, since nobody is and nobody contested it.
    bool take_over(bool helped);

    bool is_contested() const { return page_ != nullptr && page_->contested.load() != 0; }
    void contest() { page_->contested.store(1); }
    /// To put the program's data in place of the marks, which one process does. false: another.
    bool claim() { return page_->claimed.exchange(1) == 0; }
    bool is_claimed() const { return page_->claimed.load() != 0; }
    /// There is no mark in it any more.
    void give_up() { page_->given_up.store(1); }
    bool is_given_up() const { return page_->given_up.load() != 0; }
    /// The owner hears that it is contested, whatever its program does.
    bool is_helped() const { return page_->helped.load() != 0; }
    bool is_left() const;

private:
    struct Page {
        std::atomic<std::uint64_t> owner;  ///< number and start of a process; 0: none
        std::atomic<std::uint32_t> helped, contested, claimed, given_up;
    };

    std::shared_ptr<Page> page_;  ///< a thread may wait for another process
};

}  // namespace via::sockets
