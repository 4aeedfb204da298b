/* SPDX-License-Identifier: Apache-2.0 */
/* A client and a server in the manner of 1999, in C89: all memory static and registered once,
 * 64-byte descriptors aligned by hand, receives posted before connecting, addresses built in
 * 40-byte buffers on the stack, everything polled, the end of an RDMA write seen in its last word.
 *
 *     old_program server|client NIC HOST NAME
 *
 * NAME is the discriminator; HOST is looked up by the name service. Exit status 0: all was right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>

#define DEPTH 16
#define SIZE 4096
#define ROUNDS 300
#define WORDS (SIZE / sizeof(VIP_UINT32))

/* One region holds all: room to align, DEPTH receives, DEPTH sends, their buffers, the target. */
static char
    area[VIP_DESCRIPTOR_ALIGNMENT + 2 * DEPTH * sizeof(VIP_DESCRIPTOR) + 2 * DEPTH * SIZE + SIZE];
static VIP_DESCRIPTOR *recvs, *sends;
static char *recv_buffers, *send_buffers;
static VIP_UINT32* target;

static VIP_NIC_HANDLE nic;
static VIP_VI_HANDLE vi;
static VIP_MEM_HANDLE memory;
static VIP_PROTECTION_HANDLE ptag;
static volatile int expect_loss;

/* What the server tells the client in its first message. */
struct hello {
    VIP_UINT64 address;
    VIP_MEM_HANDLE handle;
};

static void check(VIP_RETURN code, const char* what) {
    if (code == VIP_SUCCESS) return;
    fprintf(stderr, "%s returned %d\n", what, (int)code);
    exit(1);
}

static void fail(const char* what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Programs of the time ended here. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    (void)context;
    if (expect_loss && error->ErrorCode == VIP_ERROR_CONN_LOST) return;
    fprintf(stderr, "asynchronous error %d\n", (int)error->ErrorCode);
    exit(1);
}

static void lay_out(void) {
    size_t at = (size_t)area;
    at = (at + VIP_DESCRIPTOR_ALIGNMENT - 1) & ~(size_t)(VIP_DESCRIPTOR_ALIGNMENT - 1);
    recvs = (VIP_DESCRIPTOR*)at;
    sends = recvs + DEPTH;
    recv_buffers = (char*)(sends + DEPTH);
    send_buffers = recv_buffers + DEPTH * SIZE;
    target = (VIP_UINT32*)(send_buffers + DEPTH * SIZE);
}

static void open_all(const char* name) {
    VIP_NIC_ATTRIBUTES nic_attributes;
    VIP_MEM_ATTRIBUTES mem_attributes;
    VIP_VI_ATTRIBUTES vi_attributes;

    check(VipOpenNic(name, &nic), "VipOpenNic");
    check(VipErrorCallback(nic, NULL, on_error), "VipErrorCallback");
    check(VipQueryNic(nic, &nic_attributes), "VipQueryNic");
    if ((int)nic_attributes.MaxTransferSize < SIZE) fail("MaxTransferSize is too small");
    check(VipCreatePtag(nic, &ptag), "VipCreatePtag");
    mem_attributes.Ptag = ptag;
    mem_attributes.EnableRdmaWrite = VIP_TRUE;
    mem_attributes.EnableRdmaRead = VIP_FALSE;
    check(VipRegisterMem(nic, area, sizeof(area), &mem_attributes, &memory), "VipRegisterMem");
    memset(&vi_attributes, 0, sizeof(vi_attributes));
    vi_attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    vi_attributes.MaxTransferSize = SIZE;
    vi_attributes.Ptag = ptag;
    vi_attributes.EnableRdmaWrite = VIP_TRUE;
    check(VipCreateVi(nic, &vi_attributes, NULL, NULL, &vi), "VipCreateVi");
}

static void close_all(void) {
    VIP_DESCRIPTOR* d;

    expect_loss = 1;
    check(VipDisconnect(vi), "VipDisconnect");
    while (VipRecvDone(vi, &d), d != NULL) continue;
    check(VipDestroyVi(vi), "VipDestroyVi");
    check(VipDeregisterMem(nic, area, memory), "VipDeregisterMem");
    check(VipDestroyPtag(nic, ptag), "VipDestroyPtag");
    check(VipCloseNic(nic), "VipCloseNic");
}

static void post_recv(VIP_DESCRIPTOR* d) {
    /* Only what the NIC may have changed is set again. */
    d->CS.Length = SIZE;
    check(VipPostRecv(vi, d, memory), "VipPostRecv");
}

static void post_all_recvs(void) {
    int i;

    for (i = 0; i < DEPTH; ++i) {
        recvs[i].CS.SegCount = 1;
        recvs[i].CS.Control = VIP_CONTROL_OP_SENDRECV;
        recvs[i].DS[0].Local.Data.Address = recv_buffers + i * SIZE;
        recvs[i].DS[0].Local.Handle = memory;
        recvs[i].DS[0].Local.Length = SIZE;
        post_recv(&recvs[i]);
    }
}

static VIP_DESCRIPTOR* poll_recv(void) {
    VIP_DESCRIPTOR* d;
    VIP_RETURN code;

    do code = VipRecvDone(vi, &d);
    while (code == VIP_NOT_DONE);
    check(code, "VipRecvDone");
    return d;
}

static void poll_send(void) {
    VIP_DESCRIPTOR* d;
    VIP_RETURN code;

    do code = VipSendDone(vi, &d);
    while (code == VIP_NOT_DONE);
    check(code, "VipSendDone");
}

/* Sends what lies in the send buffer of that number. */
static void send(int number, VIP_UINT32 length, VIP_UINT32 immediate) {
    VIP_DESCRIPTOR* d = &sends[number % DEPTH];

    d->CS.SegCount = 1;
    d->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
    d->CS.ImmediateData = immediate;
    d->CS.Length = length;
    d->DS[0].Local.Data.Address = send_buffers + (number % DEPTH) * SIZE;
    d->DS[0].Local.Handle = memory;
    d->DS[0].Local.Length = length;
    check(VipPostSend(vi, d, memory), "VipPostSend");
    poll_send();
}

static void rdma_write(int number, VIP_UINT32 length, const struct hello* to) {
    VIP_DESCRIPTOR* d = &sends[number % DEPTH];

    d->Control.SegCount = 2;
    d->Control.Control = VIP_CONTROL_OP_RDMAWRITE;
    d->Control.Length = length;
    d->DS[0].Remote.Data.AddressBits = to->address;
    d->DS[0].Remote.Handle = to->handle;
    d->DS[0].Remote.Reserved = 0;
    d->Data[1].Data.Address = send_buffers + (number % DEPTH) * SIZE;
    d->Data[1].Handle = memory;
    d->Data[1].Length = length;
    check(VipPostSend(vi, d, memory), "VipPostSend");
    poll_send();
}

static void put_name(VIP_NET_ADDRESS* address, const char* name) {
    address->DiscriminatorLen = (VIP_UINT16)strlen(name);
    memcpy(address->HostAddress + address->HostAddressLen, name, address->DiscriminatorLen);
}

static void ping_pong(int first) {
    int i;
    VIP_UINT32 length;

    for (i = 0; i < ROUNDS; ++i) {
        length = (VIP_UINT32)((i * 37) % (SIZE + 1));
        memset(send_buffers + (i % DEPTH) * SIZE, i, length);
        if (first) send(i, length, (VIP_UINT32)i);
        {
            VIP_DESCRIPTOR* d = poll_recv();
            char* data = (char*)d->DS[0].Local.Data.Address;
            if (d->CS.Length != length) fail("a message of another length");
            if (!(d->CS.Status & VIP_STATUS_IMMEDIATE) || d->CS.ImmediateData != (VIP_UINT32)i)
                fail("a message with other immediate data");
            if (length > 0 && (data[0] != (char)i || data[length - 1] != (char)i))
                fail("a message with other bytes");
            post_recv(d);
        }
        if (!first) send(i, length, (VIP_UINT32)i);
    }
}

static void server(const char* name) {
    VIP_UINT64 local_buffer[5], remote_buffer[5]; /* 40 bytes each */
    VIP_NET_ADDRESS* local = (VIP_NET_ADDRESS*)local_buffer;
    VIP_NET_ADDRESS* remote = (VIP_NET_ADDRESS*)remote_buffer;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    struct hello hello;
    VIP_UINT32 round;
    size_t i;

    post_all_recvs();
    local->HostAddressLen = 6; /* what stands there does not matter */
    put_name(local, name);
    check(VipConnectWait(nic, local, VIP_INFINITE, remote, &attributes, &connection),
          "VipConnectWait");
    check(VipConnectAccept(connection, vi), "VipConnectAccept");

    hello.address = (VIP_UINT64)(size_t)target;
    hello.handle = memory;
    memcpy(send_buffers, &hello, sizeof(hello));
    send(0, sizeof(hello), 0);
    ping_pong(0);
    for (round = 1; round <= ROUNDS; ++round) {
        volatile VIP_UINT32* last = &target[WORDS - 1];
        while (*last != round) continue;
        for (i = 0; i < WORDS; ++i)
            if (((volatile VIP_UINT32*)target)[i] != round) fail("a word behind its last one");
        if (round == ROUNDS) expect_loss = 1; /* with this answer the client may leave */
        send(0, 0, round);
    }
    poll_recv(); /* good bye */
}

static void client(const char* host, const char* name) {
    VIP_UINT64 local_buffer[5], remote_buffer[5];
    VIP_NET_ADDRESS* local = (VIP_NET_ADDRESS*)local_buffer;
    VIP_NET_ADDRESS* remote = (VIP_NET_ADDRESS*)remote_buffer;
    VIP_VI_ATTRIBUTES attributes;
    VIP_RETURN code;
    struct hello hello;
    VIP_DESCRIPTOR* d;
    VIP_UINT32 round;
    char host_name[64];
    size_t i;

    post_all_recvs();
    strncpy(host_name, host, sizeof(host_name) - 1);
    host_name[sizeof(host_name) - 1] = '\0';
    check(VipNSInit(nic, NULL), "VipNSInit");
    check(VipNSGetHostByName(nic, host_name, remote, 0), "VipNSGetHostByName");
    memcpy(local_buffer, remote_buffer, sizeof(local_buffer));
    check(VipNSShutdown(nic), "VipNSShutdown");
    put_name(local, "old client");
    put_name(remote, name);
    do code = VipConnectRequest(vi, local, remote, 10000, &attributes);
    while (code == VIP_NO_MATCH);
    check(code, "VipConnectRequest");

    d = poll_recv();
    memcpy(&hello, d->DS[0].Local.Data.Address, sizeof(hello));
    post_recv(d);
    ping_pong(1);
    for (round = 1; round <= ROUNDS; ++round) {
        VIP_UINT32* words = (VIP_UINT32*)send_buffers;
        for (i = 0; i < WORDS; ++i) words[i] = round;
        rdma_write(0, SIZE, &hello);
        d = poll_recv();
        if (d->CS.ImmediateData != round) fail("an answer to another round");
        post_recv(d);
    }
    expect_loss = 1;
    send(0, 0, 0);
}

int main(int argc, char** argv) {
    if (argc != 5) fail("usage: old_program server|client NIC HOST NAME");
    if (strlen(argv[4]) > 30) fail("the name is too long for an address of 40 bytes");
    lay_out();
    open_all(argv[2]);
    if (strcmp(argv[1], "server") == 0)
        server(argv[4]);
    else
        client(argv[3], argv[4]);
    close_all();
    return 0;
}
