-- Wireshark's and tshark's dissector of OpenVIA's packets between hosts (docs/design/protocol.md).
--   tshark -X lua_script:openvia.lua -r CAPTURE
-- or copied into the folder that Wireshark's Help, About, Folders calls "Personal Lua Plugins".

-- begin fields: made of src/wire/fields.hpp by 'cmake --build BUILD --target update_dissector'
local version = 1
local envelope_version = 3
local sealed_version = 2
local sealed_around = 16
local sealed_least = 4
local shortest = 20
local part_length = 512
local frame_longest = 65475
local layouts = {
    query = {
        filter = "openvia.query",
        length = 84,
        {"discriminator_length", 16, 2, "decimal"},
        {"zero", 18, 2, "zero"},
        {"discriminator", 20, 64, "bytes"},
    },
    answer = {
        filter = "openvia.answer",
        length = 32,
        {"code", 16, 4, "named",
            {[1] = "found", [2] = "no_match"}},
        {"port", 20, 2, "decimal"},
        {"zero", 22, 2, "zero"},
        {"instance", 24, 8, "hexadecimal"},
    },
    hello = {
        filter = "openvia.hello",
        length = 72,
        {"target", 16, 8, "hexadecimal"},
        {"attempt", 24, 8, "decimal"},
        {"moment", 32, 8, "decimal"},
        {"proof", 40, 8, "hexadecimal"},
        {"instance", 48, 8, "hexadecimal"},
        {"receive_room", 56, 4, "decimal"},
        {"ack_delay_us", 60, 4, "decimal"},
        {"datagram_max", 64, 2, "decimal"},
        {"nic_port", 66, 2, "decimal"},
        {"joins", 68, 4, "decimal"},
    },
    retry = {
        filter = "openvia.retry",
        length = 32,
        {"moment", 16, 8, "decimal"},
        {"proof", 24, 8, "hexadecimal"},
    },
    welcome = {
        filter = "openvia.welcome",
        length = 56,
        {"reply_to", 16, 8, "hexadecimal"},
        {"attempt", 24, 8, "decimal"},
        {"instance", 32, 8, "hexadecimal"},
        {"receive_room", 40, 4, "decimal"},
        {"ack_delay_us", 44, 4, "decimal"},
        {"datagram_max", 48, 2, "decimal"},
        {"nic_port", 50, 2, "decimal"},
        {"zero", 52, 4, "zero"},
    },
    refuse = {
        filter = "openvia.refuse",
        length = 20,
        {"why", 16, 4, "named",
            {[1] = "unknown_instance", [2] = "no_resource", [3] = "not_admitted"}},
    },
    unsupported = {
        filter = "openvia.unsupported",
        length = 20,
        {"least", 16, 1, "decimal"},
        {"greatest", 17, 1, "decimal"},
        {"zero", 18, 2, "zero"},
    },
    data = {
        filter = "openvia.data",
        length = 24,
        {"number", 16, 8, "decimal"},
    },
    close = {
        filter = "openvia.close",
        length = 20,
        {"why", 16, 4, "named",
            {[1] = "left", [2] = "broke_the_protocol", [3] = "unknown_path"}},
    },
    rails = {
        filter = "openvia.rails",
        length = 100,
        {"asks", 16, 1, "decimal"},
        {"count", 17, 1, "decimal"},
        {"zero", 18, 2, "zero"},
        {"length_1", 20, 2, "decimal"},
        {"address_1", 22, 18, "bytes"},
        {"length_2", 40, 2, "decimal"},
        {"address_2", 42, 18, "bytes"},
        {"length_3", 60, 2, "decimal"},
        {"address_3", 62, 18, "bytes"},
        {"length_4", 80, 2, "decimal"},
        {"address_4", 82, 18, "bytes"},
    },
    prefix = {
        filter = "openvia",
        length = 16,
        {"checksum", 0, 4, "hexadecimal"},
        {"version", 4, 1, "decimal"},
        {"kind", 5, 1, "named",
            {[1] = "query", [2] = "answer", [3] = "hello", [4] = "retry",
             [5] = "welcome", [6] = "refuse", [7] = "unsupported", [8] = "data",
             [9] = "close", [10] = "rails"}},
        {"zero", 6, 2, "zero"},
        {"connection", 8, 8, "hexadecimal"},
    },
    chunk = {
        filter = "openvia.chunk",
        length = 4,
        {"kind", 0, 1, "named",
            {[0] = "padding", [1] = "frame", [2] = "ack", [3] = "ping",
             [4] = "part"}},
        {"flags_or_count", 1, 1, "decimal"},
        {"length", 2, 2, "decimal"},
    },
    frame_chunk = {
        filter = "openvia.chunk.frame",
        length = 8,
        {"number", 4, 4, "decimal"},
    },
    part_chunk = {
        filter = "openvia.chunk.part",
        length = 12,
        {"number", 4, 4, "decimal"},
        {"at", 8, 2, "decimal"},
        {"whole", 10, 2, "decimal"},
    },
    ack_chunk = {
        filter = "openvia.chunk.ack",
        length = 16,
        {"delay", 4, 4, "decimal"},
        {"largest", 8, 8, "decimal"},
    },
    ack_range = {
        filter = "openvia.chunk.ack.range",
        length = 8,
        {"missing", 0, 4, "decimal"},
        {"there", 4, 4, "decimal"},
    },
    frame = {
        filter = "openvia.frame",
        length = 16,
        {"kind", 0, 1, "named",
            {[1] = "request", [2] = "accept", [3] = "refuse", [4] = "withdraw",
             [5] = "disconnect", [6] = "send", [7] = "rdma_write", [8] = "read_request",
             [9] = "read_reply", [10] = "ack", [11] = "nak", [12] = "peer_request",
             [13] = "credit", [14] = "attach_request", [15] = "attach_refuse", [16] = "pulled",
             [17] = "skip", [18] = "compare_swap", [19] = "fetch_add"}},
        {"flags", 1, 1, "flags",
            {[1] = "first", [2] = "last", [4] = "immediate", [8] = "extent",
             [16] = "remote", [32] = "placed", [64] = "pull"}},
        {"version", 2, 1, "decimal"},
        {"zero", 3, 1, "zero"},
        {"vi", 4, 4, "decimal"},
        {"message", 8, 4, "decimal"},
        {"immediate_or_code", 12, 4, "decimal"},
    },
    frame_extent = {
        filter = "openvia.frame",
        length = 24,
        {"message_length", 16, 4, "decimal"},
        {"offset", 20, 4, "decimal"},
    },
    frame_remote = {
        filter = "openvia.frame",
        length = 40,
        {"remote_address", 24, 8, "hexadecimal"},
        {"remote_handle", 32, 4, "decimal"},
        {"read_number", 36, 4, "decimal"},
    },
    connect = {
        filter = "openvia.connect",
        length = 160,
        {"vi", 0, 4, "decimal"},
        {"transfer_length_max", 4, 4, "decimal"},
        {"reliability", 8, 2, "named",
            {[1] = "unreliable", [2] = "reliable_delivery", [4] = "reliable_reception"}},
        {"rdma_write_enabled", 10, 1, "decimal"},
        {"rdma_read_enabled", 11, 1, "decimal"},
        {"features", 12, 4, "hexadecimal"},
        {"qos", 16, 8, "hexadecimal"},
        {"local_length", 24, 2, "decimal"},
        {"remote_length", 26, 2, "decimal"},
        {"local_discriminator", 28, 64, "bytes"},
        {"remote_discriminator", 92, 64, "bytes"},
        {"private_length", 156, 4, "decimal"},
    },
    sealed_hello = {
        filter = "openvia.sealed.hello",
        length = 232,
        {"target", 16, 8, "hexadecimal"},
        {"moment", 24, 8, "decimal"},
        {"proof", 32, 8, "hexadecimal"},
        {"cipher", 40, 1, "named",
            {[0] = "chacha20_poly1305", [1] = "aes_256_gcm"}},
        {"zero", 41, 7, "zero"},
        {"message", 48, 168, "bytes"},
        {"admission", 216, 16, "bytes"},
    },
    sealed_welcome = {
        filter = "openvia.sealed.welcome",
        length = 120,
        {"message", 16, 104, "bytes"},
    },
    sealed_text = {
        filter = "openvia.sealed",
        length = 24,
        {"number", 16, 8, "decimal"},
    },
    envelope = {
        filter = "openvia.envelope",
        length = 16,
        {"checksum", 0, 4, "hexadecimal"},
        {"version", 4, 1, "decimal"},
        {"kind", 5, 1, "named",
            {[1] = "carried", [2] = "unreachable"}},
        {"hops", 6, 1, "decimal"},
        {"address_length", 7, 1, "decimal"},
        {"connection", 8, 8, "hexadecimal"},
    },
    envelope_ipv4 = {
        filter = "openvia.envelope",
        length = 32,
        {"source", 16, 6, "bytes"},
        {"destination", 22, 6, "bytes"},
        {"zero", 28, 4, "zero"},
    },
    envelope_ipv6 = {
        filter = "openvia.envelope",
        length = 56,
        {"source", 16, 18, "bytes"},
        {"destination", 34, 18, "bytes"},
        {"zero", 52, 4, "zero"},
    },
}
-- What a frame's code is called.
local codes = {
    refuse = {[1] = "no_match", [2] = "rejected", [3] = "reliability", [4] = "transfer_length",
        [5] = "qos"},
    nak = {[1] = "no_receive", [2] = "protection", [3] = "protocol"},
    attach_refuse = {[1] = "no_right", [2] = "not_supported", [3] = "no_resource"},
}
-- end fields

local packet_kinds = layouts.prefix[3][5]
local chunk_kinds = layouts.chunk[1][5]
local frame_kinds = layouts.frame[1][5]
local envelope_kinds = layouts.envelope[3][5]
local host_port = 9741
local relay_port = 9742

local openvia = Proto("openvia", "OpenVIA")

-- Fields ------------------------------------------------------------------------------------------

local numbers = {[1] = ProtoField.uint8, [2] = ProtoField.uint16, [4] = ProtoField.uint32,
    [8] = ProtoField.uint64}

local function make_field(filter, row)
    local name, length, form, names = row[1], row[3], row[4], row[5]
    local path = filter .. "." .. name
    if form == "bytes" or not numbers[length] then return ProtoField.bytes(path, name) end
    local shown = (form == "hexadecimal" or form == "flags") and base.HEX or base.DEC
    return numbers[length](path, name, shown, form == "named" and names or nil)
end

local fields = {}  -- by layout and name
local bits = {}  -- of fields of flags: {bit, field} each
local all = {}
for layout, rows in pairs(layouts) do
    fields[layout] = {}
    for _, row in ipairs(rows) do
        local field = make_field(rows.filter, row)
        fields[layout][row[1]] = field
        all[#all + 1] = field
        if row[4] == "flags" then
            for bit_value, name in pairs(row[5]) do
                local path = rows.filter .. "." .. row[1] .. "." .. name
                local flag = ProtoField.bool(path, name, 8, nil, bit_value)
                bits[#bits + 1] = {value = bit_value, name = name, field = flag}
                all[#all + 1] = flag
            end
        end
    end
end
table.sort(bits, function(a, b) return a.value < b.value end)
local payload_field = ProtoField.bytes("openvia.frame.payload", "payload")
local sealed_field = ProtoField.bytes("openvia.sealed.text", "text and tag, under the path's keys")
local private_field = ProtoField.bytes("openvia.connect.private_data", "private data")
all[#all + 1] = payload_field
all[#all + 1] = private_field
all[#all + 1] = sealed_field
openvia.fields = all

local wrong_checksum = ProtoExpert.new("openvia.wrong_checksum", "wrong checksum",
    expert.group.CHECKSUM, expert.severity.ERROR)
local malformed = ProtoExpert.new("openvia.malformed", "not what a NIC emits",
    expert.group.MALFORMED, expert.severity.ERROR)
openvia.experts = {wrong_checksum, malformed}

-- Adds a layout's fields; `at`: where the packet, chunk or frame begins.
local function add_fields(tree, layout, tvb, at)
    for _, row in ipairs(layouts[layout]) do
        local range = tvb(at + row[2], row[3])
        local item = tree:add_le(fields[layout][row[1]], range)
        if row[4] == "zero" and range:bytes():tohex():find("[^0]") then
            item:add_proto_expert_info(malformed)
        elseif row[4] == "flags" then
            for _, flag in ipairs(bits) do item:add(flag.field, range) end
        end
    end
end

-- Checksum ----------------------------------------------------------------------------------------

local bit = bit or bit32
local byte_table = {}
for value = 0, 255 do
    local sum = value
    for _ = 1, 8 do
        local carry = bit.band(sum, 1)
        sum = bit.rshift(sum, 1)
        if carry == 1 then sum = bit.bxor(sum, 0x82F63B78) end
    end
    byte_table[value] = sum
end

local function checksum_is_right(tvb, at, length)
    local bytes = tvb:raw(at + 4, length - 4)
    local sum = 0xFFFFFFFF
    for n = 1, #bytes do
        local index = bit.band(bit.bxor(sum, bytes:byte(n)), 255)
        sum = bit.bxor(bit.rshift(sum, 8), byte_table[index])
    end
    return bit.bxor(bit.bnot(sum), tvb(at, 4):le_uint()) == 0
end

-- Packets -----------------------------------------------------------------------------------------

-- Of version 2, whose text is under keys: its kind, else nil.
local is_sealed_kind = {hello = true, welcome = true, data = true, close = true}
local function sealed_kind(tvb, at)
    local kind = packet_kinds[tvb(at + 5, 1):uint()]
    return tvb(at + 4, 1):uint() == sealed_version and is_sealed_kind[kind] and kind or nil
end
local function is_text(kind) return kind == "data" or kind == "close" end

-- Its tag is behind the keys, so instead of a checksum there are zeros.
local function checksum_or_zero_is_right(tvb, at, length)
    if is_text(sealed_kind(tvb, at)) then return tvb(at, 4):uint() == 0 end
    return checksum_is_right(tvb, at, length)
end

-- In front of what relays pass on.
local function is_envelope(tvb, at)
    return tvb:len() - at >= shortest and tvb(at + 4, 1):uint() == envelope_version and
        packet_kinds[tvb(at + 5, 1):uint()] ~= "unsupported"
end

-- The layout of its addresses, or nil and what is wrong with it.
local function envelope_layout(tvb, at)
    if tvb:len() - at < layouts.envelope_ipv4.length then return nil, "too short" end
    local each = tvb(at + 7, 1):uint()
    local name = each == 6 and "envelope_ipv4" or each == 18 and "envelope_ipv6" or nil
    if not name then return nil, "with impossible contents" end
    if tvb:len() - at < layouts[name].length then return nil, "too short" end
    if not checksum_is_right(tvb, at, layouts[name].length) then
        return nil, "with a wrong checksum"
    end
    local kind = envelope_kinds[tvb(at + 5, 1):uint()]
    if not kind then return nil, "of an unknown kind" end
    if kind == "unreachable" then return name end
    local packet = at + layouts[name].length
    if tvb:len() - packet < shortest then return nil, "too short" end
    if tvb:raw(at + 8, 8) ~= tvb:raw(packet + 8, 8) then
        return nil, "with impossible contents"
    end
    return name
end

-- Those of datagrams that are to be cut later are all the same.
local function envelope_and_packet_length(tvb, at)
    local rest = tvb:len() - at
    local name = envelope_layout(tvb, at)
    if not name then return rest end
    local length = layouts[name].length
    local raw = tvb:raw(at, rest)
    local next_one = raw:find(raw:sub(1, length), length + 1, true)
    return next_one and next_one - 1 or rest
end

local function looks_like_a_packet(tvb, at)
    if tvb:len() - at < shortest then return false end
    local sealed = sealed_kind(tvb, at)
    if sealed then
        return tvb(at + 6, 2):uint() == 0 and (not is_text(sealed) or tvb(at, 4):uint() == 0)
    end
    local kind = packet_kinds[tvb(at + 5, 1):uint()]
    return kind ~= nil and tvb(at + 6, 2):uint() == 0 and
        (tvb(at + 4, 1):uint() == version or kind == "unsupported")
end

-- Of the packet there. A capture on the sender's side shows several packets as one datagram when
-- the kernel or the network card is to cut it later; then the next one begins behind a chunk.
local function packet_length(tvb, at)
    local rest = tvb:len() - at
    if is_text(sealed_kind(tvb, at)) then
        -- The next one begins as this one does, with the next number.
        local raw = tvb:raw(at, rest)
        local number = tvb(at + 16, 8):le_uint64()
        local least = layouts.sealed_text.length + sealed_around
        local next_one = raw:find(raw:sub(1, 16), least + 1, true)
        while next_one and rest - next_one + 1 >= layouts.sealed_text.length do
            if tvb(at + next_one + 15, 8):le_uint64() == number + UInt64(1) then
                return next_one - 1
            end
            next_one = raw:find(raw:sub(1, 16), next_one + 1, true)
        end
        return rest
    end
    if packet_kinds[tvb(at + 5, 1):uint()] ~= "data" then return rest end
    local length = layouts.data.length
    while rest - length >= layouts.data.length do
        local next_one = at + length
        if looks_like_a_packet(tvb, next_one) and
            tvb:raw(next_one + 8, 8) == tvb:raw(at + 8, 8) and
            checksum_is_right(tvb, at, length) then
            return length
        end
        length = length + layouts.chunk.length + tvb(next_one + 2, 2):le_uint()
    end
    return rest
end

-- Frames and chunks: each returns what one line says of it, or nil if it is malformed.

local function add_payload(tree, kind, tvb, at, length)
    if length == 0 then return end
    local connects = kind == "request" or kind == "accept" or kind == "peer_request"
    if not connects or length < layouts.connect.length then
        tree:add(payload_field, tvb(at, length))
        return
    end
    add_fields(tree:add(tvb(at, length), "connect message"), "connect", tvb, at)
    if length > layouts.connect.length then
        tree:add(private_field, tvb(at + layouts.connect.length, length - layouts.connect.length))
    end
end

local function add_frame(tree, tvb, at, length)
    local kind = length >= layouts.frame.length and frame_kinds[tvb(at, 1):uint()] or "?"
    local text = kind .. " (" .. length .. ")"
    local frame = tree:add(tvb(at, length), "frame: " .. text)
    if kind == "?" then
        frame:add(payload_field, tvb(at, length))
        frame:add_proto_expert_info(malformed)
        return text
    end
    add_fields(frame, "frame", tvb, at)
    if codes[kind] then
        local code = tvb(at + 12, 4):le_uint()
        frame:append_text(", code " .. (codes[kind][code] or code))
    end
    local header = layouts.frame.length
    for _, flag in ipairs(bits) do
        local part = layouts["frame_" .. flag.name]
        local set = bit.band(tvb(at + 1, 1):uint(), flag.value) ~= 0
        if part and set and length >= part.length then
            add_fields(frame, "frame_" .. flag.name, tvb, at)
            header = part.length
        end
    end
    add_payload(frame, kind, tvb, at + header, length - header)
    return text
end

local function add_frame_chunk(tree, tvb, at, length)
    if length <= layouts.frame_chunk.length then return nil end
    add_fields(tree, "frame_chunk", tvb, at)
    local number = tvb(at + 4, 4):le_uint() .. " "
    if tvb(at + 1, 1):uint() == 0 then number = "" end
    return "frame " .. number .. add_frame(tree, tvb, at + layouts.frame_chunk.length,
        length - layouts.frame_chunk.length)
end

local function add_part_chunk(tree, tvb, at, length)
    local fixed = layouts.part_chunk.length
    if length <= fixed or tvb(at + 1, 1):uint() ~= 0 then return nil end
    local number, place = tvb(at + 4, 4):le_uint(), tvb(at + 8, 2):le_uint()
    local whole = tvb(at + 10, 2):le_uint()
    if whole <= part_length or whole > frame_longest or place % part_length ~= 0 or
        place >= whole or length - fixed ~= math.min(part_length, whole - place) then
        return nil
    end
    add_fields(tree, "part_chunk", tvb, at)
    return string.format("part %d (%d+%d of %d)", number, place, length - fixed, whole)
end

local function add_ack_chunk(tree, tvb, at, length)
    local count = tvb(at + 1, 1):uint()
    local fixed, each = layouts.ack_chunk.length, layouts.ack_range.length
    if count == 0 or length ~= fixed + count * each then return nil end
    add_fields(tree, "ack_chunk", tvb, at)
    local last = tvb(at + 8, 8):le_uint64()
    local texts = {}
    for n = 0, count - 1 do
        local where = at + fixed + n * each
        last = last - UInt64(tvb(where, 4):le_uint())
        local first = last - UInt64(tvb(where + 4, 4):le_uint() - 1)
        local text = tostring(first)
        if first ~= last then text = text .. "-" .. tostring(last) end
        add_fields(tree:add(tvb(where, each), "arrived: " .. text), "ack_range", tvb, where)
        texts[#texts + 1] = text
        last = first - UInt64(1)
    end
    return "ack " .. table.concat(texts, ",")
end

local function add_chunk(tree, tvb, at, length)
    local kind = chunk_kinds[tvb(at, 1):uint()]
    local chunk = tree:add(tvb(at, length), "chunk")
    add_fields(chunk, "chunk", tvb, at)
    local text = kind
    if kind == "frame" then text = add_frame_chunk(chunk, tvb, at, length) end
    if kind == "ack" then text = add_ack_chunk(chunk, tvb, at, length) end
    if kind == "part" then text = add_part_chunk(chunk, tvb, at, length) end
    if text then
        chunk:set_text(text)
    else
        chunk:add_proto_expert_info(malformed)
    end
    return text
end

local function add_data(tree, tvb, at, length)
    if length < layouts.data.length then return "", false end
    add_fields(tree, "data", tvb, at)
    local texts = {"#" .. tostring(tvb(at + 16, 8):le_uint64())}
    local chunk, stop = at + layouts.data.length, at + length
    while chunk < stop do
        local chunk_length = layouts.chunk.length
        if stop - chunk >= chunk_length then
            chunk_length = chunk_length + tvb(chunk + 2, 2):le_uint()
        end
        if chunk + chunk_length > stop then return table.concat(texts, " "), false end
        local text = add_chunk(tree, tvb, chunk, chunk_length)
        if not text then return table.concat(texts, " "), false end
        texts[#texts + 1] = text
        chunk = chunk + chunk_length
    end
    return table.concat(texts, " "), true
end

-- What one line says of packets of connecting, behind the connection.

local function hexadecimal(tvb, at) return tvb(at, 8):le_uint64():tohex() end

local function offer_text(tvb, at)
    return " instance=" .. hexadecimal(tvb, at) .. " receive_room=" .. tvb(at + 8, 4):le_uint() ..
        " ack_delay_us=" .. tvb(at + 12, 4):le_uint() .. " datagram_max=" ..
        tvb(at + 16, 2):le_uint() .. " nic_port=" .. tvb(at + 18, 2):le_uint()
end

local function place(layout, name)
    for _, row in ipairs(layouts[layout]) do
        if row[1] == name then return row[2] end
    end
end

local function name_at(layout, tvb, at)
    return layouts[layout][1][5][tvb(at + layouts[layout][1][2], 4):le_uint()] or "?"
end

local connecting_text = {
    query = function(tvb, at)
        local length = math.min(tvb(at + place("query", "discriminator_length"), 2):le_uint(), 64)
        local name = tvb:raw(at + place("query", "discriminator"), length)
        local text = name:gsub(".", function(byte)
            local plain = byte > " " and byte <= "~" and byte ~= "\\"
            return plain and byte or string.format("\\%02x", byte:byte())
        end)
        return "discriminator=" .. text
    end,
    answer = function(tvb, at)
        local code = name_at("answer", tvb, at)
        if code ~= "found" then return code end
        return code .. " port=" .. tvb(at + place("answer", "port"), 2):le_uint() ..
            " instance=" .. hexadecimal(tvb, at + place("answer", "instance"))
    end,
    hello = function(tvb, at)
        local none = tvb:raw(at + place("hello", "moment"), 16) == string.rep("\0", 16)
        return "target=" .. hexadecimal(tvb, at + place("hello", "target")) .. " attempt=" ..
            tostring(tvb(at + place("hello", "attempt"), 8):le_uint64()) ..
            (none and "" or " cookie") .. offer_text(tvb, at + place("hello", "instance")) ..
            (tvb(at + place("hello", "joins"), 4):le_uint() ~= 0 and " joins" or "")
    end,
    retry = function(tvb, at)
        return "moment=" .. tostring(tvb(at + place("retry", "moment"), 8):le_uint64())
    end,
    welcome = function(tvb, at)
        return "reply_to=" .. hexadecimal(tvb, at + place("welcome", "reply_to")) .. " attempt=" ..
            tostring(tvb(at + place("welcome", "attempt"), 8):le_uint64()) ..
            offer_text(tvb, at + place("welcome", "instance"))
    end,
    refuse = function(tvb, at) return name_at("refuse", tvb, at) end,
    unsupported = function(tvb, at)
        return "versions=" .. tvb(at + place("unsupported", "least"), 1):uint() .. "-" ..
            tvb(at + place("unsupported", "greatest"), 1):uint()
    end,
    close = function(tvb, at) return name_at("close", tvb, at) end,
    rails = function(tvb, at)
        return "count=" .. tvb(at + place("rails", "count"), 1):uint() ..
            (tvb(at + place("rails", "asks"), 1):uint() ~= 0 and " asks" or "")
    end,
}

-- Of version 2: what is in the open. Returns one line, and whether all is well.
local function add_sealed(tree, kind, tvb, at, length)
    local text = "sealed " .. kind .. " connection=" .. hexadecimal(tvb, at + 8)
    if tvb(at + 6, 2):uint() ~= 0 then return text, false end
    if is_text(kind) then
        local fixed = layouts.sealed_text.length
        local rest = length - fixed - sealed_around
        if rest < sealed_least then return text, false end
        add_fields(tree, "sealed_text", tvb, at)
        tree:add(sealed_field, tvb(at + fixed, length - fixed))
        return string.format("%s #%s (%d)", text, tostring(tvb(at + 16, 8):le_uint64()), rest), true
    end
    if kind == "hello" and length == layouts.hello.length then
        add_fields(tree, "hello", tvb, at)
        return text .. " " .. connecting_text.hello(tvb, at), true
    end
    local layout = "sealed_" .. kind
    if length ~= layouts[layout].length then return text, false end
    add_fields(tree, layout, tvb, at)
    if kind == "welcome" then return text, true end
    local cipher = tvb(at + place(layout, "cipher"), 1):uint()
    local zeros = tvb:raw(at + place(layout, "zero"), 7)
    if cipher > 1 or zeros ~= string.rep("\0", 7) then return text, false end
    return text .. " target=" .. hexadecimal(tvb, at + place(layout, "target")) .. " cookie " ..
        layouts[layout][4][5][cipher], true
end

-- The same words as wire::print_packet().
local function add_packet(tree, tvb, at, length, whole)
    local function wrong(why) return "packet of " .. length .. " bytes " .. why end
    local packet = tree:add(openvia, tvb(at, length), "OpenVIA")
    if length < shortest then
        packet:add_proto_expert_info(malformed)
        return wrong("too short")
    end
    add_fields(packet, "prefix", tvb, at)
    if whole and not checksum_or_zero_is_right(tvb, at, length) then
        packet:add_proto_expert_info(wrong_checksum)
        return wrong("with a wrong checksum")
    end
    local kind = packet_kinds[tvb(at + 5, 1):uint()]
    if sealed_kind(tvb, at) then
        local text, good = add_sealed(packet, kind, tvb, at, length)
        if not good then
            packet:add_proto_expert_info(malformed)
            text = text .. " ... " .. wrong("with impossible contents")
        end
        packet:append_text(": " .. text)
        return text
    end
    if tvb(at + 4, 1):uint() ~= version and kind ~= "unsupported" then
        return wrong("of an unknown version")
    end
    if not kind then return wrong("of an unknown kind") end
    local text, good = kind, true
    if kind == "data" then
        local data
        data, good = add_data(packet, tvb, at, length)
        text = text .. (data == "" and "" or " " .. data)
    else
        text = text .. " connection=" .. hexadecimal(tvb, at + 8)
        good = length == layouts[kind].length
        if good then
            add_fields(packet, kind, tvb, at)
            text = text .. " " .. connecting_text[kind](tvb, at)
        end
    end
    if not good then
        packet:add_proto_expert_info(malformed)
        text = text .. " ... " .. wrong("with impossible contents")
    end
    packet:append_text(": " .. text)
    return text
end

local function address_text(tvb, at, length)
    local host = {}
    if length == 6 then
        for n = 0, 3 do host[#host + 1] = tvb(at + n, 1):uint() end
    else
        for n = 0, 14, 2 do host[#host + 1] = string.format("%x", tvb(at + n, 2):uint()) end
    end
    local text = length == 6 and table.concat(host, ".") or "[" .. table.concat(host, ":") .. "]"
    return text .. ":" .. tvb(at + length - 2, 2):uint()
end

-- And what is in it.
local function add_envelope(tree, tvb, at, length, whole)
    local item = tree:add(openvia, tvb(at, length), "OpenVIA envelope")
    local name, why = envelope_layout(tvb, at)
    if not name then
        item:add_proto_expert_info(
            why == "with a wrong checksum" and wrong_checksum or malformed)
        return "envelope of " .. length .. " bytes " .. why
    end
    add_fields(item, "envelope", tvb, at)
    add_fields(item, name, tvb, at)
    local each = tvb(at + 7, 1):uint()
    local kind = envelope_kinds[tvb(at + 5, 1):uint()]
    local text = kind .. " " .. address_text(tvb, at + 16, each) .. " to " ..
        address_text(tvb, at + 16 + each, each) .. " hops=" .. tvb(at + 6, 1):uint()
    if kind == "unreachable" then text = text .. " connection=" .. hexadecimal(tvb, at + 8) end
    item:append_text(": " .. text)
    if kind == "unreachable" then return text end
    local fixed = layouts[name].length
    return text .. ": " .. add_packet(tree, tvb, at + fixed, length - fixed, whole)
end

function openvia.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "OpenVIA"
    local whole = tvb:captured_len() == tvb:reported_len()
    local texts, at = {}, 0
    while at < tvb:len() do
        local length = tvb:len() - at
        if is_envelope(tvb, at) then
            length = whole and envelope_and_packet_length(tvb, at) or length
            texts[#texts + 1] = add_envelope(tree, tvb, at, length, whole)
        else
            local known = whole and looks_like_a_packet(tvb, at)
            length = known and packet_length(tvb, at) or length
            texts[#texts + 1] = add_packet(tree, tvb, at, length, whole)
        end
        at = at + length
    end
    pinfo.cols.info = table.concat(texts, " | ")
    return tvb:len()
end

-- Data ports have any number: what looks like a packet, and has the checksum of one, is one.
local function is_ours(tvb)
    if tvb:captured_len() ~= tvb:reported_len() then return false end
    if is_envelope(tvb, 0) then return envelope_layout(tvb, 0) ~= nil end
    return looks_like_a_packet(tvb, 0) and
        checksum_or_zero_is_right(tvb, 0, packet_length(tvb, 0)) and
        (not is_text(sealed_kind(tvb, 0)) or
            tvb:len() >= layouts.sealed_text.length + sealed_around + sealed_least)
end

local function heuristic(tvb, pinfo, tree)
    if not is_ours(tvb) then return false end
    pinfo.conversation = openvia
    openvia.dissector(tvb, pinfo, tree)
    return true
end

DissectorTable.get("udp.port"):add(host_port, openvia)
DissectorTable.get("udp.port"):add(relay_port, openvia)
openvia:register_heuristic("udp", heuristic)
