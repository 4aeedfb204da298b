#include "lab/machine.hpp"

namespace via::lab {
namespace {

constexpr Field all[] = {
    {"host.user_post", Unit::time, &Costs::user_post, "making and queueing a descriptor"},
    {"host.user_poll", Unit::time, &Costs::user_poll, "looking at one work queue"},
    {"host.system_call", Unit::time, &Costs::system_call, "into the kernel and back"},
    {"host.kernel_post", Unit::time, &Costs::kernel_post, "the driver's part of a post"},
    {"host.interrupt", Unit::time, &Costs::interrupt, "from the NIC's signal to the handler"},
    {"host.pio_write", Unit::time_per_word, &Costs::pio_write, "a word stored to the NIC"},
    {"host.pio_read", Unit::time_per_word, &Costs::pio_read, "a word loaded from the NIC"},
    {"bus.to_nic", Unit::rate, &Costs::bus_to_nic, "DMA from host memory"},
    {"bus.to_host", Unit::rate, &Costs::bus_to_host, "DMA into host memory"},
    {"bus.burst", Unit::size, &Costs::bus_burst, "after which others get the bus"},
    {"bus.word", Unit::time_per_word, &Costs::bus_word, "the bus's part of a PIO word"},
    {"dma.start_to_nic", Unit::time, &Costs::dma_start_to_nic, "before the first byte moves"},
    {"dma.start_to_host", Unit::time, &Costs::dma_start_to_host, "before the first byte moves"},
    {"firmware.step", Unit::time, &Costs::firmware_step, "instructions of a step"},
    {"firmware.word", Unit::time_per_word, &Costs::firmware_word, "a word of shared memory"},
    {"firmware.jitter", Unit::percent, &Costs::firmware_jitter, "a step more or less, at most"},
    {"firmware.doorbell_poll", Unit::time, &Costs::doorbell_poll, "one VI's doorbell (D1)"},
    {"firmware.look", Unit::words, &Costs::words_look, "a look for work"},
    {"firmware.look_dma", Unit::words, &Costs::words_look_dma, "a look whether a DMA is done"},
    {"firmware.take_control", Unit::words, &Costs::words_take_control, "PD: its control part"},
    {"firmware.take_segment", Unit::words, &Costs::words_take_segment, "PD: one piece of it"},
    {"firmware.copy", Unit::words, &Costs::words_copy, "a word of payload that came by PIO"},
    {"firmware.start_lhs_send", Unit::words, &Costs::words_start_lhs_send, "a DMA from the host"},
    {"firmware.start_lhs_receive", Unit::words, &Costs::words_start_lhs_receive,
     "a DMA to the host"},
    {"firmware.start_rhs", Unit::words, &Costs::words_start_rhs, "FIFO to link or back"},
    {"firmware.header", Unit::words, &Costs::words_header, "a packet's headers"},
    {"firmware.decode", Unit::words, &Costs::words_decode, "an arrived packet's headers"},
    {"firmware.status", Unit::words, &Costs::words_status, "status and length of a descriptor"},
    {"firmware.translate", Unit::words, &Costs::words_translate, "one look into a table or cache"},
    {"fifo.internal_bus", Unit::rate, &Costs::internal_bus, "RHS: FIFO to link interface"},
    {"fifo.send", Unit::size, &Costs::send_fifo, "Send-FIFO"},
    {"fifo.receive", Unit::size, &Costs::receive_fifo, "Recv/Cmd-FIFO"},
    {"fifo.interface", Unit::size, &Costs::interface_buffer, "link interface, each direction"},
    {"link.rate", Unit::rate, &Costs::link, "each direction"},
    {"link.switch_delay", Unit::time, &Costs::switch_delay, "cut-through of one switch"},
    {"link.switch_buffer", Unit::size, &Costs::switch_buffer, "shared by its ports"},
    {"link.switch_header", Unit::size, &Costs::switch_header, "in front of a packet"},
    {"link.message_header", Unit::size, &Costs::message_header, "VIA's, within the payload"},
    {"link.packet_max", Unit::size, &Costs::packet_max, "payload with VIA's header"},
    {"nic.memory", Unit::size, &Costs::nic_memory, "that VIA may have"},
    {"nic.control", Unit::words, &Costs::control_words, "PD: its control part"},
    {"nic.segment", Unit::words, &Costs::segment_words, "PD: one piece"},
    {"host.page", Unit::size, &Costs::page, "of physical memory"},
};

}  // namespace

std::span<const Field> fields() { return all; }

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

}  // namespace via::lab
