// The board of one epoll set, and the thread that sleeps beside it.
#pragma once

#include "board.hpp"

namespace via::sockets {

/// With all sets held. One thread sleeps at a time: see EpollSet::crowd().
class SetBoard {
public:
    /// At the first socket that is marked there. false: there is no memory.
    bool open();
    void give_back();
    /// In a child by fork(): it is the parent's.
    void forget() { *this = {}; }

    /// What a peer has to know.
    Mark mark_of(int fd, bool room);
    void clear(int fd) { board_->clear(static_cast<std::uint32_t>(fd)); }
    template <class Do>
    void take(const Do& what) {
        if (board_ != nullptr) board_->take(words_, what);
    }
    bool any() const { return board_ != nullptr && board_->any(words_); }

    bool has_sleeper() const { return sleeps_now_; }
    /// Then a look at any(); or again, while the thread sleeps.
    void sleep();
    void end_sleep();

private:
    Board* board_ = nullptr;
    std::uint32_t words_ = 0;   ///< of the board that are used
    std::uint64_t sleeps_ = 0;  ///< so far
    bool sleeps_now_ = false;
};

}  // namespace via::sockets
