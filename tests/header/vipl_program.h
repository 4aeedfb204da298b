/* SPDX-License-Identifier: Apache-2.0 */
/* What an old program does with the header, run: both spellings, segments beyond the two declared,
 * addresses built in a byte buffer. Common subset of C89 and C++98. */
#ifndef VIPL_PROGRAM_H
#define VIPL_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int vipl_failures = 0;

static void vipl_expect(int holds, const char* what, int line) {
    if (!holds) {
        fprintf(stderr, "line %d: %s\n", line, what);
        ++vipl_failures;
    }
}

#define VIPL_EXPECT(condition) vipl_expect((condition) ? 1 : 0, #condition, __LINE__)

static VIP_UINT32 vipl_word_at(const void* base, size_t offset) {
    VIP_UINT32 word;
    memcpy(&word, (const char*)base + offset, sizeof(word));
    return word;
}

static VIP_UINT16 vipl_half_at(const void* base, size_t offset) {
    VIP_UINT16 half;
    memcpy(&half, (const char*)base + offset, sizeof(half));
    return half;
}

/* Room for a descriptor, aligned by hand as programs of the time did. The caller frees *block. */
static VIP_DESCRIPTOR* vipl_make_descriptor(size_t segments, void** block) {
    size_t size = sizeof(VIP_CONTROL_SEGMENT) + segments * sizeof(VIP_DESCRIPTOR_SEGMENT);
    size_t address;

    *block = malloc(size + VIP_DESCRIPTOR_ALIGNMENT);
    if (*block == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    memset(*block, 0, size + VIP_DESCRIPTOR_ALIGNMENT);
    address = (size_t)*block;
    address = (address + VIP_DESCRIPTOR_ALIGNMENT - 1) / VIP_DESCRIPTOR_ALIGNMENT;
    return (VIP_DESCRIPTOR*)(address * VIP_DESCRIPTOR_ALIGNMENT);
}

/* VIPL 1.2, 1.3: what one spelling writes the other reads, at the bytes of the contract. */
static void vipl_control_spellings(void) {
    void* block;
    VIP_DESCRIPTOR* d = vipl_make_descriptor(2, &block);

    VIPL_EXPECT((void*)&d->CS == (void*)&d->Control);
    d->CS.Next.Descriptor = d;
    d->CS.NextHandle = 0x11111111;
    d->CS.SegCount = 2;
    d->CS.Control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
    d->CS.Reserved = 0;
    d->CS.ImmediateData = 0x22222222;
    d->CS.Length = 0x33333333;
    d->CS.Status = VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE;
    VIPL_EXPECT(d->Control.Next.Address == (void*)d);
    VIPL_EXPECT(d->Control.Next.AddressBits == (VIP_UINT64)(size_t)d);
    VIPL_EXPECT(d->Control.NextHandle == 0x11111111);
    VIPL_EXPECT(d->Control.SegCount == 2);
    VIPL_EXPECT(d->Control.Control == 5);
    VIPL_EXPECT(d->Control.ImmediateData == 0x22222222);
    VIPL_EXPECT(d->Control.Length == 0x33333333);
    VIPL_EXPECT(d->Control.Status == 0x20001);
    VIPL_EXPECT(vipl_word_at(d, 8) == 0x11111111);
    VIPL_EXPECT(vipl_half_at(d, 12) == 2);
    VIPL_EXPECT(vipl_half_at(d, 14) == 5);
    VIPL_EXPECT(vipl_word_at(d, 20) == 0x22222222);
    VIPL_EXPECT(vipl_word_at(d, 24) == 0x33333333);
    VIPL_EXPECT(vipl_word_at(d, 28) == 0x20001);

    d->Control.Status = 0;
    VIPL_EXPECT((d->CS.Status & VIP_STATUS_DONE) == 0);
    free(block);
}

static void vipl_segment_spellings(void) {
    void* block;
    char there = 0;
    VIP_DESCRIPTOR* d = vipl_make_descriptor(2, &block);
    VIP_DESCRIPTOR_SEGMENT* segment = d->DS;
    VIP_DATA_SEGMENT* data = d->Data;

    VIPL_EXPECT((void*)segment == (void*)data);
    d->DS[0].Remote.Data.Address = &there;
    d->DS[0].Remote.Handle = 7;
    d->DS[0].Remote.Reserved = 0;
    d->DS[1].Local.Data.Address = block;
    d->DS[1].Local.Handle = 8;
    d->DS[1].Local.Length = 9;
    VIPL_EXPECT(d->Data[0].Data.Address == (void*)&there);
    VIPL_EXPECT(d->Data[0].Handle == 7);
    VIPL_EXPECT(d->Data[0].Length == 0);
    VIPL_EXPECT(d->Data[1].Data.Address == block);
    VIPL_EXPECT(d->Data[1].Handle == 8);
    VIPL_EXPECT(d->Data[1].Length == 9);
    VIPL_EXPECT(vipl_word_at(d, 32 + 8) == 7);
    VIPL_EXPECT(vipl_word_at(d, 48 + 8) == 8);
    VIPL_EXPECT(vipl_word_at(d, 48 + 12) == 9);
    free(block);
}

/* VIPL 1.2: segments go on behind the two declared; 252 is what every NIC takes (VIPL 1.9). */
static void vipl_many_segments(int count) {
    void* block;
    int i;
    VIP_DESCRIPTOR* d = vipl_make_descriptor((size_t)count, &block);

    for (i = 0; i < count; ++i) {
        d->DS[i].Local.Data.AddressBits = (VIP_UINT64)i * 4096;
        d->DS[i].Local.Handle = (VIP_MEM_HANDLE)i + 1000;
        d->DS[i].Local.Length = (VIP_UINT32)i + 1;
    }
    for (i = 0; i < count; ++i) {
        size_t at = sizeof(VIP_CONTROL_SEGMENT) + (size_t)i * sizeof(VIP_DATA_SEGMENT);
        VIPL_EXPECT(d->Data[i].Data.AddressBits == (VIP_UINT64)i * 4096);
        VIPL_EXPECT(d->Data[i].Handle == (VIP_MEM_HANDLE)i + 1000);
        VIPL_EXPECT(d->Data[i].Length == (VIP_UINT32)i + 1);
        VIPL_EXPECT(vipl_word_at(d, at + 8) == (VIP_UINT32)i + 1000);
        VIPL_EXPECT(vipl_word_at(d, at + 12) == (VIP_UINT32)i + 1);
    }
    free(block);
}

/* VIPL 1.4 */
static void vipl_net_address(void) {
    static const char host[6] = {127, 0, 0, 1, 38, 13};
    static const char discriminator[5] = "port";
    char* bytes = (char*)malloc(128);
    VIP_NET_ADDRESS* address = (VIP_NET_ADDRESS*)(void*)bytes;

    if (bytes == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    memset(bytes, 0, 128);
    address->HostAddressLen = sizeof(host);
    address->DiscriminatorLen = sizeof(discriminator);
    memcpy(address->HostAddress, host, sizeof(host));
    memcpy(address->HostAddress + address->HostAddressLen, discriminator, sizeof(discriminator));
    VIPL_EXPECT(vipl_half_at(bytes, 0) == 6);
    VIPL_EXPECT(vipl_half_at(bytes, 2) == 5);
    VIPL_EXPECT(memcmp(bytes + 4, host, sizeof(host)) == 0);
    VIPL_EXPECT(memcmp(bytes + 10, discriminator, sizeof(discriminator)) == 0);
    free(bytes);
}

/* VIPL 1.6: without a default the compiler refuses a code that is missing here. */
static int vipl_is_code(VIP_RETURN code) {
    switch (code) {
        case VIP_SUCCESS:
        case VIP_NOT_DONE:
        case VIP_INVALID_PARAMETER:
        case VIP_ERROR_RESOURCE:
        case VIP_TIMEOUT:
        case VIP_REJECT:
        case VIP_INVALID_RELIABILITY_LEVEL:
        case VIP_INVALID_MTU:
        case VIP_INVALID_QOS:
        case VIP_INVALID_PTAG:
        case VIP_INVALID_RDMAREAD:
        case VIP_DESCRIPTOR_ERROR:
        case VIP_INVALID_STATE:
        case VIP_ERROR_NAMESERVICE:
        case VIP_NO_MATCH:
        case VIP_NOT_REACHABLE:
        case VIP_ERROR_NOT_SUPPORTED:
            return 1;
    }
    return 0;
}

static int vipl_is_state(VIP_VI_STATE state) {
    switch (state) {
        case VIP_STATE_IDLE:
        case VIP_STATE_CONNECTED:
        case VIP_STATE_CONNECT_PENDING:
        case VIP_STATE_ERROR:
            return 1;
    }
    return 0;
}

static int vipl_is_resource(VIP_RESOURCE_CODE code) {
    switch (code) {
        case VIP_RESOURCE_NIC:
        case VIP_RESOURCE_VI:
        case VIP_RESOURCE_CQ:
        case VIP_RESOURCE_DESCRIPTOR:
            return 1;
    }
    return 0;
}

static int vipl_is_error(VIP_ERROR_CODE code) {
    switch (code) {
        case VIP_ERROR_POST_DESC:
        case VIP_ERROR_CONN_LOST:
        case VIP_ERROR_RECVQ_EMPTY:
        case VIP_ERROR_VI_OVERRUN:
        case VIP_ERROR_RDMAW_PROT:
        case VIP_ERROR_RDMAW_DATA:
        case VIP_ERROR_RDMAW_ABORT:
        case VIP_ERROR_RDMAR_PROT:
        case VIP_ERROR_COMP_PROT:
        case VIP_ERROR_RDMA_TRANSPORT:
        case VIP_ERROR_CATASTROPHIC:
            return 1;
    }
    return 0;
}

static void vipl_codes(void) {
    int n;
    for (n = 0; n <= 16; ++n) {
        VIPL_EXPECT(vipl_is_code((VIP_RETURN)n));
    }
    for (n = 0; n <= 3; ++n) {
        VIPL_EXPECT(vipl_is_state((VIP_VI_STATE)n));
        VIPL_EXPECT(vipl_is_resource((VIP_RESOURCE_CODE)n));
    }
    for (n = 0; n <= 10; ++n) {
        VIPL_EXPECT(vipl_is_error((VIP_ERROR_CODE)n));
    }
}

/* VIPL 1.5: kept in 32 bits, VIP_INFINITE is still for ever. */
static void vipl_infinite(void) {
    VIP_UINT32 narrow = VIP_INFINITE;
    VIP_ULONG wide = narrow;
    VIPL_EXPECT(wide == VIP_INFINITE);
}

static int vipl_program(void) {
    vipl_control_spellings();
    vipl_segment_spellings();
    vipl_many_segments(252);
    vipl_net_address();
    vipl_codes();
    vipl_infinite();
    return vipl_failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
