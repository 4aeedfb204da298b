#include "set_board.hpp"

#include <algorithm>

#include "process.hpp"

namespace via::sockets {

bool SetBoard::open() {
    Arena* const arena = own_arena_if_made();
    if (board_ != nullptr || arena == nullptr) return board_ != nullptr;
    const std::uint64_t offset = arena->take_board();
    if (offset != 0) board_ = arena->at<Board>(offset);
    return board_ != nullptr;
}

void SetBoard::give_back() {
    Arena* const arena = own_arena_if_made();
    if (board_ != nullptr && arena != nullptr) arena->give_back_board(arena->offset_of(board_));
    *this = {};
}

Mark SetBoard::mark_of(int fd, bool room) {
    const auto bit = static_cast<std::uint32_t>(fd);
    words_ = std::max(words_, bit / 64 + 1);
    return {own_arena_if_made()->offset_of(board_), bit, room};
}

void SetBoard::sleep() {
    sleeps_now_ = true;
    board_->sleep(++sleeps_);
}

void SetBoard::end_sleep() {
    sleeps_now_ = false;
    if (board_ != nullptr) board_->end_sleep();
}

}  // namespace via::sockets
