// Every field of packets and frames: its name, place and length, and what its values are called.
// print() takes its words from here, tools/dissector its tables; tests hold emit() to the places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "wire/envelope.hpp"
#include "wire/frame.hpp"
#include "wire/packet.hpp"
#include "wire/sealed.hpp"

namespace via::wire {

/// What a value is called.
struct Name {
    std::uint32_t value;
    const char* text;
};

enum class FieldForm : std::uint8_t { decimal, hexadecimal, named, flags, bytes, zero };

struct Field {
    const char* name;
    std::uint16_t offset;  ///< from the beginning of the packet, chunk or frame
    std::uint16_t length;
    FieldForm form;
    std::span<const Name> names{};  ///< of values, or of flags' bits
};

/// Fields side by side, from the first one's offset to `end` without a gap.
struct Layout {
    const char* name;
    const char* filter;  ///< of a dissector, before the names of the fields
    std::span<const Field> fields;
    std::uint16_t end;
};

/// "?" for a value without a name.
constexpr const char* name_of(std::uint32_t value, std::span<const Name> names) {
    for (const Name& name : names)
        if (name.value == value) return name.text;
    return "?";
}
template <class E>
    requires std::is_enum_v<E>
constexpr const char* name_of(E value, std::span<const Name> names) {
    return name_of(static_cast<std::uint32_t>(value), names);
}

inline constexpr Name packet_kind_names[] = {
    {1, "query"},  {2, "answer"},      {3, "hello"}, {4, "retry"}, {5, "welcome"},
    {6, "refuse"}, {7, "unsupported"}, {8, "data"},  {9, "close"}, {10, "rails"}};
inline constexpr Name envelope_kind_names[] = {{1, "carried"}, {2, "unreachable"}};
inline constexpr Name answer_names[] = {{1, "found"}, {2, "no_match"}};
inline constexpr Name path_refusal_names[] = {
    {1, "unknown_instance"}, {2, "no_resource"}, {3, "not_admitted"}};
inline constexpr Name close_names[] = {{1, "left"}, {2, "broke_the_protocol"}, {3, "unknown_path"}};
inline constexpr Name chunk_kind_names[] = {
    {0, "padding"}, {1, "frame"}, {2, "ack"}, {3, "ping"}, {4, "part"}};
inline constexpr Name frame_kind_names[] = {{1, "request"},        {2, "accept"},
                                            {3, "refuse"},         {4, "withdraw"},
                                            {5, "disconnect"},     {6, "send"},
                                            {7, "rdma_write"},     {8, "read_request"},
                                            {9, "read_reply"},     {10, "ack"},
                                            {11, "nak"},           {12, "peer_request"},
                                            {13, "credit"},        {14, "attach_request"},
                                            {15, "attach_refuse"}, {16, "pulled"},
                                            {17, "skip"},          {18, "compare_swap"},
                                            {19, "fetch_add"}};
inline constexpr Name frame_flag_names[] = {{1, "first"},  {2, "last"},    {4, "immediate"},
                                            {8, "extent"}, {16, "remote"}, {32, "placed"},
                                            {64, "pull"}};
inline constexpr Name refuse_names[] = {
    {1, "no_match"}, {2, "rejected"}, {3, "reliability"}, {4, "transfer_length"}, {5, "qos"}};
inline constexpr Name nak_names[] = {{1, "no_receive"}, {2, "protection"}, {3, "protocol"}};
inline constexpr Name attach_refusal_names[] = {
    {1, "no_right"}, {2, "not_supported"}, {3, "no_resource"}};
/// Of an authenticated wire (secure::CipherKind).
inline constexpr Name cipher_names[] = {{0, "chacha20_poly1305"}, {1, "aes_256_gcm"}};
/// VIPL's bits (VIPL 4.25).
inline constexpr Name reliability_names[] = {
    {1, "unreliable"}, {2, "reliable_delivery"}, {4, "reliable_reception"}};

namespace fields {

using enum FieldForm;

inline constexpr Field prefix[] = {{"checksum", 0, 4, hexadecimal},
                                   {"version", 4, 1, decimal},
                                   {"kind", 5, 1, named, packet_kind_names},
                                   {"zero", 6, 2, zero},
                                   {"connection", 8, 8, hexadecimal}};
inline constexpr Field query[] = {{"discriminator_length", 16, 2, decimal},
                                  {"zero", 18, 2, zero},
                                  {"discriminator", 20, 64, bytes}};
inline constexpr Field answer[] = {{"code", 16, 4, named, answer_names},
                                   {"port", 20, 2, decimal},
                                   {"zero", 22, 2, zero},
                                   {"instance", 24, 8, hexadecimal}};
inline constexpr Field hello[] = {
    {"target", 16, 8, hexadecimal},   {"attempt", 24, 8, decimal},
    {"moment", 32, 8, decimal},       {"proof", 40, 8, hexadecimal},
    {"instance", 48, 8, hexadecimal}, {"receive_room", 56, 4, decimal},
    {"ack_delay_us", 60, 4, decimal}, {"datagram_max", 64, 2, decimal},
    {"nic_port", 66, 2, decimal},     {"joins", 68, 4, decimal}};
inline constexpr Field retry[] = {{"moment", 16, 8, decimal}, {"proof", 24, 8, hexadecimal}};
inline constexpr Field welcome[] = {
    {"reply_to", 16, 8, hexadecimal}, {"attempt", 24, 8, decimal},
    {"instance", 32, 8, hexadecimal}, {"receive_room", 40, 4, decimal},
    {"ack_delay_us", 44, 4, decimal}, {"datagram_max", 48, 2, decimal},
    {"nic_port", 50, 2, decimal},     {"zero", 52, 4, zero}};
inline constexpr Field refuse[] = {{"why", 16, 4, named, path_refusal_names}};
inline constexpr Field unsupported[] = {
    {"least", 16, 1, decimal}, {"greatest", 17, 1, decimal}, {"zero", 18, 2, zero}};
inline constexpr Field data[] = {{"number", 16, 8, decimal}};
inline constexpr Field close[] = {{"why", 16, 4, named, close_names}};
inline constexpr Field rails[] = {
    {"asks", 16, 1, decimal},     {"count", 17, 1, decimal},    {"zero", 18, 2, zero},
    {"length_1", 20, 2, decimal}, {"address_1", 22, 18, bytes}, {"length_2", 40, 2, decimal},
    {"address_2", 42, 18, bytes}, {"length_3", 60, 2, decimal}, {"address_3", 62, 18, bytes},
    {"length_4", 80, 2, decimal}, {"address_4", 82, 18, bytes}};

inline constexpr Field chunk[] = {{"kind", 0, 1, named, chunk_kind_names},
                                  {"flags_or_count", 1, 1, decimal},
                                  {"length", 2, 2, decimal}};
inline constexpr Field frame_chunk[] = {{"number", 4, 4, decimal}};
inline constexpr Field part_chunk[] = {
    {"number", 4, 4, decimal}, {"at", 8, 2, decimal}, {"whole", 10, 2, decimal}};
inline constexpr Field ack_chunk[] = {{"delay", 4, 4, decimal}, {"largest", 8, 8, decimal}};
inline constexpr Field ack_range[] = {{"missing", 0, 4, decimal}, {"there", 4, 4, decimal}};

inline constexpr Field frame[] = {{"kind", 0, 1, named, frame_kind_names},
                                  {"flags", 1, 1, flags, frame_flag_names},
                                  {"version", 2, 1, decimal},
                                  {"zero", 3, 1, zero},
                                  {"vi", 4, 4, decimal},
                                  {"message", 8, 4, decimal},
                                  {"immediate_or_code", 12, 4, decimal}};
inline constexpr Field frame_extent[] = {{"message_length", 16, 4, decimal},
                                         {"offset", 20, 4, decimal}};
inline constexpr Field frame_remote[] = {{"remote_address", 24, 8, hexadecimal},
                                         {"remote_handle", 32, 4, decimal},
                                         {"read_number", 36, 4, decimal}};
inline constexpr Field connect[] = {{"vi", 0, 4, decimal},
                                    {"transfer_length_max", 4, 4, decimal},
                                    {"reliability", 8, 2, named, reliability_names},
                                    {"rdma_write_enabled", 10, 1, decimal},
                                    {"rdma_read_enabled", 11, 1, decimal},
                                    {"features", 12, 4, hexadecimal},
                                    {"qos", 16, 8, hexadecimal},
                                    {"local_length", 24, 2, decimal},
                                    {"remote_length", 26, 2, decimal},
                                    {"local_discriminator", 28, 64, bytes},
                                    {"remote_discriminator", 92, 64, bytes},
                                    {"private_length", 156, 4, decimal}};

// What is in the open of packets of version 2.
inline constexpr Field sealed_hello[] = {
    {"target", sealed::hello_target, 8, hexadecimal},
    {"moment", sealed::hello_moment, 8, decimal},
    {"proof", sealed::hello_proof, 8, hexadecimal},
    {"cipher", sealed::hello_cipher, 1, named, cipher_names},
    {"zero", sealed::hello_zero, 7, zero},
    {"message", sealed::hello_message, sealed::hello_message_length, bytes},
    {"admission", sealed::hello_admission, sealed::admission_length, bytes}};
inline constexpr Field sealed_welcome[] = {
    {"message", sealed::welcome_message, sealed::welcome_length - sealed::welcome_message, bytes}};
inline constexpr Field sealed_text[] = {{"number", sealed::number, 8, decimal}};

// What relays pass on, in front of a packet: addresses are of one length or the other.
inline constexpr Field envelope[] = {{"checksum", 0, 4, hexadecimal},
                                     {"version", 4, 1, decimal},
                                     {"kind", 5, 1, named, envelope_kind_names},
                                     {"hops", 6, 1, decimal},
                                     {"address_length", 7, 1, decimal},
                                     {"connection", 8, 8, hexadecimal}};
inline constexpr Field envelope_ipv4[] = {
    {"source", 16, 6, bytes}, {"destination", 22, 6, bytes}, {"zero", 28, 4, zero}};
inline constexpr Field envelope_ipv6[] = {
    {"source", 16, 18, bytes}, {"destination", 34, 18, bytes}, {"zero", 52, 4, zero}};

}  // namespace fields

/// Behind the prefix, in the order of PacketKind.
inline constexpr Layout packet_layouts[] = {
    {"query", "openvia.query", fields::query, 84},
    {"answer", "openvia.answer", fields::answer, 32},
    {"hello", "openvia.hello", fields::hello, 72},
    {"retry", "openvia.retry", fields::retry, 32},
    {"welcome", "openvia.welcome", fields::welcome, 56},
    {"refuse", "openvia.refuse", fields::refuse, 20},
    {"unsupported", "openvia.unsupported", fields::unsupported, 20},
    {"data", "openvia.data", fields::data, data_header_length},
    {"close", "openvia.close", fields::close, 20},
    {"rails", "openvia.rails", fields::rails, 100}};
/// The others. Those of frames follow each other, as far as flags say.
inline constexpr Layout other_layouts[] = {
    {"prefix", "openvia", fields::prefix, packet_prefix_length},
    {"chunk", "openvia.chunk", fields::chunk, chunk_prefix_length},
    {"frame_chunk", "openvia.chunk.frame", fields::frame_chunk, frame_chunk_overhead},
    {"part_chunk", "openvia.chunk.part", fields::part_chunk, part_chunk_overhead},
    {"ack_chunk", "openvia.chunk.ack", fields::ack_chunk, 16},
    {"ack_range", "openvia.chunk.ack.range", fields::ack_range, 8},
    {"frame", "openvia.frame", fields::frame, header_length_base},
    {"frame_extent", "openvia.frame", fields::frame_extent, header_length_extent},
    {"frame_remote", "openvia.frame", fields::frame_remote, header_length_remote},
    {"connect", "openvia.connect", fields::connect, sizeof(ConnectMessage)},
    {"sealed_hello", "openvia.sealed.hello", fields::sealed_hello, sealed::hello_length},
    {"sealed_welcome", "openvia.sealed.welcome", fields::sealed_welcome, sealed::welcome_length},
    {"sealed_text", "openvia.sealed", fields::sealed_text, sealed::text},
    {"envelope", "openvia.envelope", fields::envelope, 16},
    {"envelope_ipv4", "openvia.envelope", fields::envelope_ipv4, envelope_length(6)},
    {"envelope_ipv6", "openvia.envelope", fields::envelope_ipv6, envelope_length(18)}};

/// Of a packet of that kind; of data, without its chunks.
constexpr std::uint32_t packet_length(PacketKind kind) {
    return packet_layouts[static_cast<std::uint8_t>(kind) - 1].end;
}

/// Side by side, each within the packet, and what is shown as a number of a number's length.
constexpr bool has_no_gap(const Layout& layout) {
    std::uint32_t at = layout.fields.front().offset;
    for (const Field& field : layout.fields) {
        const bool number =
            field.length == 1 || field.length == 2 || field.length == 4 || field.length == 8;
        if (field.offset != at ||
            (!number && field.form != FieldForm::bytes && field.form != FieldForm::zero))
            return false;
        at += field.length;
    }
    return at == layout.end;
}
static_assert([] {
    for (const Layout& layout : packet_layouts)
        if (!has_no_gap(layout) || layout.fields.front().offset != packet_prefix_length)
            return false;
    for (const Layout& layout : other_layouts)
        if (!has_no_gap(layout)) return false;
    return std::size(packet_layouts) == packet_kind_max &&
           std::size(packet_kind_names) == packet_kind_max &&
           std::size(frame_kind_names) == frame_kind_max;
}());

}  // namespace via::wire
