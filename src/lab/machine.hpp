// What a machine's parts cost and hold: data, read from a file (lab/file). There are no defaults.
#pragma once

#include <cstdint>
#include <initializer_list>
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
    packets,        ///< "64 packets"
    percent,        ///< "5 %"
    commands,       ///< "16 commands"
};

/// Where a number comes from. Only what is published or measured is evidence.
enum class Standing : std::uint8_t {
    published,   ///< the source names paper and place
    assumed,     ///< nobody says; the source says why this much
    calibrated,  ///< set so that one published figure comes out; the source names it
};
const char* name_of(Standing standing);

/// What a machine consists of, besides a host, its bus and a link: what its costs are of.
enum class Has : std::uint8_t {
    anything = 0,   ///< every machine has it
    adapter = 1,    ///< a NIC that runs firmware, or the like in hardware
    kernel = 2,     ///< a kernel that takes part in messages
    ethernet = 4,   ///< a NIC that knows packets alone: VIA is in the kernel
    window = 8,     ///< memory of other hosts can be imported, and stored into; with an adapter
    hardware = 7,   ///< of costs: of machines with an adapter, a kernel or Ethernet
    software = 16,  ///< a NIC that is a library, between processes of one host; alone
};
constexpr Has all_parts[] = {Has::adapter, Has::kernel, Has::ethernet, Has::window, Has::software};
const char* name_of(Has part);

/// What the costs stand for is said in machine.cpp, where also the names of the file are.
struct Costs {
    // The host
    std::int64_t user_post, user_poll, system_call, kernel_post, interrupt, pio_write, pio_read;
    // The bus between host and NIC
    std::int64_t bus_to_nic, bus_to_host, bus_burst, bus_word, dma_start_to_nic, dma_start_to_host;
    std::int64_t dma_under_way;
    // The firmware: a step's instructions, and a word of memory or register that is not cached
    std::int64_t firmware_step, firmware_word, firmware_jitter, doorbell_poll;
    std::int64_t words_look, words_look_dma, words_take_control, words_take_segment, words_copy;
    std::int64_t words_start_lhs_send, words_start_lhs_receive, words_start_rhs, words_header;
    std::int64_t words_decode, words_status, words_translate;
    // Misses of dynamic look-up
    std::int64_t miss_delay, miss_serve, miss_pin, miss_unpin, miss_sweep, miss_retransmit;
    // FIFOs, link and switch
    std::int64_t internal_bus, send_fifo, receive_fifo, interface_buffer;
    std::int64_t link, switch_delay, switch_buffer, switch_header, message_header;
    std::int64_t packet_max;
    // The kernel, where it takes part; what two processors cost more
    std::int64_t trap, lock, lock_smp, user_lock_smp, process_switch, spin, spin_smp, copy;
    std::int64_t handler, driver_send, via_send, via_receive, tcp_packet, tcp_acknowledge;
    // Ethernet, and a NIC that knows packets alone
    std::int64_t frame, frame_least, via_header, tcp_header, ring_entry, nic_packet, nic_buffer;
    std::int64_t ring, hop;
    // A window into imported memory, and the tables of both directions
    std::int64_t combine, combining, fill, window_burst, stream, streams, card;
    std::int64_t imported, import_page, exported, dma_slows;
    // A NIC that is a library
    std::int64_t software_line, software_receive, software_post_receive, software_spin;
    std::int64_t software_frame, software_room, software_cache, software_far;
    // Memory of the NIC that VIA may have, and what things take of it
    std::int64_t page, nic_memory, control_words, segment_words;
};

struct Field {
    std::string_view key;  ///< "host.pio_write"
    Unit unit;
    std::int64_t Costs::* place;
    std::string_view meaning;
    Has of;
};
/// Of machines that have all parts; machine.needs() tells which ones a machine needs.
std::span<const Field> fields();

struct Origin {
    Standing standing = Standing::published;
    std::string source;
    std::string file;  ///< whose it is, if this machine is like another one
    std::string at;    ///< file and line: "my.toml:17"
};

/// Words of a design: "at" -> "3".
using Words = std::map<std::string, std::string, std::less<>>;

struct Machine {
    std::string name;
    std::string title;
    std::string paper;
    std::uint8_t parts = 0;  ///< of Has
    Costs costs{};
    std::map<std::string, Origin, std::less<>> origins;  ///< by key
    Words design;                                        ///< what it is if nobody says else
    Words design_at;                                     ///< file and line of each of its words
    std::string at;                                      ///< file and line where they begin

    bool has(Has part) const {
        const auto bits = static_cast<std::uint8_t>(part);
        return (parts & bits) == bits;
    }
    /// Is such a cost one of this machine's?
    bool needs(Has of) const {
        return of == Has::anything || (parts & static_cast<std::uint8_t>(of)) != 0;
    }
};

/// An error about words of a design. It names file and line if all of them are as the machine's
/// file says; else somebody has asked for others.
std::string refusal(const Machine& machine, const Words& design,
                    std::initializer_list<std::string_view> words, const std::string& what);
/// The same of a word that the design does not have.
std::string missing(const Machine& machine, std::string_view word);
/// "link.packet_max, my.toml:17"
std::string place_of(const Machine& machine, std::string_view cost);

/// Time of `bytes` at a rate, rounded up.
constexpr Duration time_of(std::int64_t bytes, std::int64_t bytes_per_second) {
    return {(bytes * 1'000'000'000 + bytes_per_second - 1) / bytes_per_second};
}

}  // namespace via::lab
