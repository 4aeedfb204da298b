// What a machine's parts cost and hold: data, read from a file (lab/file). There are no defaults.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace via::lab {

enum class Unit : std::uint8_t {
    time,           ///< "2.27 us", in nanoseconds
    time_per_word,  ///< "0.33 us/word", a word of 32 bits; nanoseconds
    rate,           ///< "132 MB/s", in bytes a second
    size,           ///< "4096 B", "512 KB"
    words,          ///< "5 words"
    percent,        ///< "5 %"
};

/// Where a number comes from. Only what is published or measured is evidence.
enum class Standing : std::uint8_t {
    published,   ///< the source names paper and place
    assumed,     ///< nobody says; the source says why this much
    calibrated,  ///< set so that one published figure comes out; the source names it
};
const char* name_of(Standing standing);

/// What the costs stand for is said in machine.cpp, where also the names of the file are.
struct Costs {
    // The host
    std::int64_t user_post, user_poll, system_call, kernel_post, interrupt, pio_write, pio_read;
    // The bus between host and NIC
    std::int64_t bus_to_nic, bus_to_host, bus_burst, bus_word, dma_start_to_nic, dma_start_to_host;
    // The firmware: a step's instructions, and a word of memory or register that is not cached
    std::int64_t firmware_step, firmware_word, firmware_jitter, doorbell_poll;
    std::int64_t words_look, words_look_dma, words_take_control, words_take_segment, words_copy;
    std::int64_t words_start_lhs_send, words_start_lhs_receive, words_start_rhs, words_header;
    std::int64_t words_decode, words_status, words_translate;
    // FIFOs, link and switch
    std::int64_t internal_bus, send_fifo, receive_fifo, interface_buffer;
    std::int64_t link, switch_delay, switch_buffer, switch_header, message_header;
    std::int64_t packet_max;
    // Memory of the NIC that VIA may have, and what things take of it
    std::int64_t page, nic_memory, control_words, segment_words;
};

struct Field {
    std::string_view key;  ///< "host.pio_write"
    Unit unit;
    std::int64_t Costs::* place;
    std::string_view meaning;
};
std::span<const Field> fields();

struct Origin {
    Standing standing = Standing::published;
    std::string source;
};

struct Machine {
    std::string name;
    std::string title;
    std::string paper;
    Costs costs{};
    std::map<std::string, Origin, std::less<>> origins;      ///< by key
    std::map<std::string, std::string, std::less<>> design;  ///< what it is if nobody says else
};

/// Time of `bytes` at a rate, rounded up.
constexpr Duration time_of(std::int64_t bytes, std::int64_t bytes_per_second) {
    return {(bytes * 1'000'000'000 + bytes_per_second - 1) / bytes_per_second};
}

}  // namespace via::lab
