// Writes the tables of wire/fields.hpp in Lua, for tools/dissector/openvia.lua.
#include <cstdio>
#include <span>

#include "wire/fields.hpp"

using namespace via::wire;

namespace {

const char* text_of(FieldForm form) {
    switch (form) {
        case FieldForm::decimal:
            return "decimal";
        case FieldForm::hexadecimal:
            return "hexadecimal";
        case FieldForm::named:
            return "named";
        case FieldForm::flags:
            return "flags";
        case FieldForm::bytes:
            return "bytes";
        case FieldForm::zero:
            return "zero";
    }
    return "?";
}

void write_names(std::span<const Name> names, int indent) {
    std::printf("{");
    for (std::size_t n = 0; n < names.size(); ++n) {
        if (n != 0) std::printf(n % 4 == 0 ? ",\n%*s" : ", ", n % 4 == 0 ? indent : 0, "");
        std::printf("[%u] = \"%s\"", names[n].value, names[n].text);
    }
    std::printf("}");
}

void write_layout(const Layout& layout) {
    std::printf("    %s = {\n        filter = \"%s\",\n        length = %u,\n", layout.name,
                layout.filter, unsigned{layout.end});
    for (const Field& field : layout.fields) {
        std::printf("        {\"%s\", %u, %u, \"%s\"", field.name, unsigned{field.offset},
                    unsigned{field.length}, text_of(field.form));
        if (!field.names.empty()) {
            std::printf(",\n            ");
            write_names(field.names, 13);
        }
        std::printf("},\n");
    }
    std::printf("    },\n");
}

void write_codes(FrameKind kind, std::span<const Name> names) {
    std::printf("    %s = ", name_of(kind, frame_kind_names));
    write_names(names, 8);
    std::printf(",\n");
}

}  // namespace

int main() {
    std::printf("local version = %u\n", unsigned{packet_version});
    std::printf("local envelope_version = %u\n", unsigned{envelope_version});
    std::printf("local sealed_version = %u\n", unsigned{sealed::version});
    std::printf("local sealed_around = %u\n", sealed::tag_length);
    std::printf("local sealed_least = %u\n", sealed::text_least);
    std::printf("local shortest = %u\n", packet_length_least);
    std::printf("local part_length = %u\n", part_length);
    std::printf("local frame_longest = %u\n", frame_length_max);
    std::printf("local layouts = {\n");
    for (const Layout& layout : packet_layouts) write_layout(layout);
    for (const Layout& layout : other_layouts) write_layout(layout);
    std::printf("}\n-- What a frame's code is called.\nlocal codes = {\n");
    write_codes(FrameKind::refuse, refuse_names);
    write_codes(FrameKind::nak, nak_names);
    write_codes(FrameKind::attach_refuse, attach_refusal_names);
    std::printf("}\n");
}
