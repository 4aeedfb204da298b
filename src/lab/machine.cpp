#include "lab/machine.hpp"

#include <algorithm>

namespace via::lab {
namespace {

constexpr Field all[] = {
    {"host.user_post", Unit::time, &Costs::user_post, "making and queueing a descriptor",
     Has::anything},
    {"host.user_poll", Unit::time, &Costs::user_poll, "looking at one work queue", Has::anything},
    {"host.system_call", Unit::time, &Costs::system_call, "into the kernel and back",
     Has::anything},
    {"host.kernel_post", Unit::time, &Costs::kernel_post, "the driver's part of a post",
     Has::adapter},
    {"host.interrupt", Unit::time, &Costs::interrupt, "from the NIC's signal to the handler",
     Has::anything},
    {"host.pio_write", Unit::time_per_word, &Costs::pio_write, "a word stored to the NIC",
     Has::hardware},
    {"host.pio_read", Unit::time_per_word, &Costs::pio_read, "a word loaded from the NIC",
     Has::hardware},
    {"bus.to_nic", Unit::rate, &Costs::bus_to_nic, "DMA from host memory", Has::hardware},
    {"bus.to_host", Unit::rate, &Costs::bus_to_host, "DMA into host memory", Has::hardware},
    {"bus.burst", Unit::size, &Costs::bus_burst, "after which others get the bus", Has::hardware},
    {"bus.word", Unit::time_per_word, &Costs::bus_word, "the bus's part of a PIO word",
     Has::hardware},
    {"dma.start_to_nic", Unit::time, &Costs::dma_start_to_nic, "before the first byte moves",
     Has::hardware},
    {"dma.start_to_host", Unit::time, &Costs::dma_start_to_host, "before the first byte moves",
     Has::hardware},
    {"dma.under_way", Unit::commands, &Costs::dma_under_way, "DMAs of one engine that have begun",
     Has::hardware},
    {"firmware.step", Unit::time, &Costs::firmware_step, "instructions of a step", Has::adapter},
    {"firmware.word", Unit::time_per_word, &Costs::firmware_word, "a word of shared memory",
     Has::adapter},
    {"firmware.jitter", Unit::percent, &Costs::firmware_jitter, "a step more or less, at most",
     Has::adapter},
    {"firmware.doorbell_poll", Unit::time, &Costs::doorbell_poll, "one VI's doorbell (D1)",
     Has::adapter},
    {"firmware.look", Unit::words, &Costs::words_look, "a look for work", Has::adapter},
    {"firmware.look_dma", Unit::words, &Costs::words_look_dma, "a look whether a DMA is done",
     Has::adapter},
    {"firmware.take_control", Unit::words, &Costs::words_take_control, "PD: its control part",
     Has::adapter},
    {"firmware.take_segment", Unit::words, &Costs::words_take_segment, "PD: one piece of it",
     Has::adapter},
    {"firmware.copy", Unit::words, &Costs::words_copy, "a word of payload that came by PIO",
     Has::adapter},
    {"firmware.start_lhs_send", Unit::words, &Costs::words_start_lhs_send, "a DMA from the host",
     Has::adapter},
    {"firmware.start_lhs_receive", Unit::words, &Costs::words_start_lhs_receive,
     "a DMA to the host", Has::adapter},
    {"firmware.start_rhs", Unit::words, &Costs::words_start_rhs, "FIFO to link or back",
     Has::adapter},
    {"firmware.header", Unit::words, &Costs::words_header, "a packet's headers", Has::adapter},
    {"firmware.decode", Unit::words, &Costs::words_decode, "an arrived packet's headers",
     Has::adapter},
    {"firmware.status", Unit::words, &Costs::words_status, "status and length of a descriptor",
     Has::adapter},
    {"firmware.translate", Unit::words, &Costs::words_translate, "one look into a table or cache",
     Has::adapter},
    {"miss.delay", Unit::time, &Costs::miss_delay, "until the kernel lets its thread run, mean",
     Has::adapter},
    {"miss.serve", Unit::time, &Costs::miss_serve, "the thread's own part of a miss", Has::adapter},
    {"miss.pin", Unit::time, &Costs::miss_pin, "more for each page to be pinned", Has::adapter},
    {"miss.unpin", Unit::time, &Costs::miss_unpin, "for each page let go", Has::adapter},
    {"miss.sweep", Unit::time, &Costs::miss_sweep, "between looks at the high-water mark",
     Has::adapter},
    {"miss.retransmit", Unit::time, &Costs::miss_retransmit,
     "after which a NIC sends again what was not acknowledged", Has::adapter},
    {"fifo.internal_bus", Unit::rate, &Costs::internal_bus, "RHS: FIFO to link interface",
     Has::adapter},
    {"fifo.send", Unit::size, &Costs::send_fifo, "Send-FIFO", Has::adapter},
    {"fifo.receive", Unit::size, &Costs::receive_fifo, "Recv/Cmd-FIFO", Has::adapter},
    {"fifo.interface", Unit::size, &Costs::interface_buffer, "link interface, each direction",
     Has::adapter},
    {"link.rate", Unit::rate, &Costs::link, "each direction", Has::anything},
    {"link.switch_delay", Unit::time, &Costs::switch_delay, "cut-through of one switch",
     Has::adapter},
    {"link.switch_buffer", Unit::size, &Costs::switch_buffer, "shared by its ports", Has::adapter},
    {"link.switch_header", Unit::size, &Costs::switch_header, "in front of a packet", Has::adapter},
    {"link.message_header", Unit::size, &Costs::message_header, "VIA's, within the payload",
     Has::adapter},
    {"link.packet_max", Unit::size, &Costs::packet_max, "payload with VIA's header", Has::adapter},
    {"nic.memory", Unit::size, &Costs::nic_memory, "that VIA may have", Has::adapter},
    {"nic.control", Unit::words, &Costs::control_words, "PD: its control part", Has::adapter},
    {"nic.segment", Unit::words, &Costs::segment_words, "PD: one piece", Has::adapter},
    {"kernel.trap", Unit::time, &Costs::trap, "into the kernel and back, the fast way",
     Has::kernel},
    {"kernel.lock", Unit::time, &Costs::lock, "a spin lock, interrupts shut out", Has::kernel},
    {"kernel.lock_smp", Unit::time, &Costs::lock_smp, "more of it with two processors",
     Has::kernel},
    {"kernel.user_lock_smp", Unit::time, &Costs::user_lock_smp, "a library's lock with two",
     Has::kernel},
    {"kernel.switch", Unit::time, &Costs::process_switch, "a process that slept goes on",
     Has::kernel},
    {"kernel.spin", Unit::time, &Costs::spin, "a wait polls so long before it sleeps", Has::kernel},
    {"kernel.spin_smp", Unit::time, &Costs::spin_smp, "the same with two processors", Has::kernel},
    {"kernel.handler", Unit::time, &Costs::handler, "the driver's part of a packet received",
     Has::kernel},
    {"kernel.driver_send", Unit::time, &Costs::driver_send, "the driver's part of a packet sent",
     Has::kernel},
    {"kernel.via_send", Unit::time, &Costs::via_send, "VIA's part of a packet sent", Has::kernel},
    {"kernel.via_receive", Unit::time, &Costs::via_receive, "VIA's part of a packet received",
     Has::kernel},
    {"kernel.tcp", Unit::time, &Costs::tcp_packet, "TCP/IP's part of a packet, either side",
     Has::kernel},
    {"kernel.tcp_acknowledge", Unit::time, &Costs::tcp_acknowledge,
     "an acknowledgement, either side", Has::kernel},
    {"kernel.tcp_header", Unit::size, &Costs::tcp_header, "TCP's and IP's, within a packet",
     Has::kernel},
    {"ethernet.frame", Unit::size, &Costs::frame, "around a packet: preamble, header, check, gap",
     Has::ethernet},
    {"ethernet.least", Unit::size, &Costs::frame_least, "the shortest packet, with its frame",
     Has::ethernet},
    {"ethernet.via_header", Unit::size, &Costs::via_header, "VIA's, within a packet",
     Has::ethernet},
    {"ethernet.ring_entry", Unit::size, &Costs::ring_entry, "the NIC's descriptor of a packet",
     Has::ethernet},
    {"ethernet.ring", Unit::packets, &Costs::ring, "packets that the NIC's rings hold",
     Has::ethernet},
    {"ethernet.nic", Unit::time, &Costs::nic_packet, "a NIC's own time for a packet",
     Has::ethernet},
    {"ethernet.buffer", Unit::size, &Costs::nic_buffer, "packets within a NIC, each way",
     Has::ethernet},
    {"ethernet.hop", Unit::time, &Costs::hop, "a switch, behind the packet's last bit",
     Has::ethernet},
    {"window.combine", Unit::size, &Costs::combine, "stores that go to the bus in one burst",
     Has::window},
    {"window.combining", Unit::commands, &Costs::combining, "bursts that may wait for the bus",
     Has::window},
    {"window.fill", Unit::rate, &Costs::fill, "loads and stores of a copy, before the bus",
     Has::window},
    {"window.burst", Unit::time, &Costs::window_burst, "the bus's part of a burst but its bytes",
     Has::window},
    {"window.stream", Unit::size, &Costs::stream, "bytes of a packet", Has::window},
    {"window.streams", Unit::commands, &Costs::streams, "packets that may be without an answer",
     Has::window},
    {"window.card", Unit::time, &Costs::card, "a card's own time for a packet, either way",
     Has::window},
    {"window.imported", Unit::size, &Costs::imported, "memory that can be imported", Has::window},
    {"window.import_page", Unit::size, &Costs::import_page, "a page of it", Has::window},
    {"window.exported", Unit::size, &Costs::exported, "memory that can be exported", Has::window},
    {"window.dma_slows", Unit::percent, &Costs::dma_slows,
     "the processor beside the DMA engine, out of its caches", Has::window},
    {"software.line", Unit::time, &Costs::software_line,
     "a line that another processor wrote comes to this cache", Has::software},
    {"software.receive", Unit::time, &Costs::software_receive,
     "a message's receive, once its line is there", Has::software},
    {"software.post_receive", Unit::time, &Costs::software_post_receive, "posting a receive",
     Has::software},
    {"software.spin", Unit::time, &Costs::software_spin, "a wait polls so long before it sleeps",
     Has::software},
    {"software.frame", Unit::size, &Costs::software_frame, "payload in one frame", Has::software},
    {"software.room", Unit::size, &Costs::software_room, "frames from one sender on their way",
     Has::software},
    {"software.cache", Unit::size, &Costs::software_cache, "what one processor's own caches hold",
     Has::software},
    {"software.far", Unit::rate, &Costs::software_far,
     "as link.rate, of lines that no processor's cache holds", Has::software},
    {"host.copy", Unit::rate, &Costs::copy, "memory to memory", Has::hardware},
    {"host.page", Unit::size, &Costs::page, "of physical memory", Has::anything},
};

/// Of "my.toml:17".
std::string_view file_of(std::string_view at) { return at.substr(0, at.rfind(':')); }

}  // namespace

std::span<const Field> fields() { return all; }

const char* name_of(Has part) {
    switch (part) {
        case Has::anything:
            return "anything";
        case Has::adapter:
            return "adapter";
        case Has::kernel:
            return "kernel";
        case Has::ethernet:
            return "ethernet";
        case Has::window:
            return "window";
        case Has::hardware:
            return "adapter, kernel or ethernet";
        case Has::software:
            return "software";
    }
    return "?";
}

const char* name_of(Standing standing) {
    switch (standing) {
        case Standing::published:
            return "published";
        case Standing::assumed:
            return "assumed";
        case Standing::calibrated:
            return "calibrated";
    }
    return "?";
}

std::string refusal(const Machine& machine, const Words& design,
                    std::initializer_list<std::string_view> words, const std::string& what) {
    const auto of_file = [&](std::string_view word) {
        const auto ours = machine.design.find(word), found = design.find(word);
        return ours != machine.design.end() && found != design.end() &&
               ours->second == found->second && machine.design_at.contains(word);
    };
    if (words.size() == 0 || !std::ranges::all_of(words, of_file))
        return "design of " + machine.name + ": " + what;
    const auto own = [&](std::string_view word) {
        return file_of(machine.design_at.find(word)->second) == file_of(machine.at);
    };
    const auto first = std::ranges::find_if(words, own);  // rather than of one that it is like
    const auto blamed = first == words.end() ? words.begin() : first;
    return machine.design_at.find(*blamed)->second + ": " + what;
}

std::string missing(const Machine& machine, std::string_view word) {
    return machine.at + ": design." + std::string(word) + " is missing; there are no defaults";
}

std::string place_of(const Machine& machine, std::string_view cost) {
    const auto found = machine.origins.find(cost);
    const std::string at = found == machine.origins.end() ? "" : ", " + found->second.at;
    return std::string(cost) + at;
}

}  // namespace via::lab
