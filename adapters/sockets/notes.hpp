// What `via sockets status` says of programs that run over the kernel's sockets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace via::sockets {

struct Note {
    std::uint32_t process = 0;
    std::string program, why;
};

/// Of a process that lives, until it ends. Where nothing can be written nothing is said.
void leave_note(const Note& note);
/// Of those that live; the rest goes.
std::vector<Note> notes();

/// Why the system will not load the library into this program; empty: it will.
std::string why_not_loaded(const std::string& file);

}  // namespace via::sockets
