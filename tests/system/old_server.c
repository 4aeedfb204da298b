/* SPDX-License-Identifier: Apache-2.0 */
/* A server in the manner of 2001, for C89 to C++: the NIC opened twice, system() after opening, one
 * thread for ever in VipConnectWait, another in VipCQWait(INFINITE), credits counted by hand in the
 * immediate data, and an end by exit() within the error callback, when the last client has gone.
 *
 *     old_server server|client NIC HOST NAME
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>

#define CLIENTS 2
#define DEPTH 8
#define SIZE 256
#define MESSAGES 500

typedef struct {
    VIP_DESCRIPTOR recvs[DEPTH]; /* 64 bytes each, as the NIC wants them aligned */
    VIP_DESCRIPTOR sends[DEPTH];
    char in[DEPTH][SIZE];
    char out[DEPTH][SIZE];
    VIP_VI_HANDLE vi;
    int next_send;
    char rest[VIP_DESCRIPTOR_ALIGNMENT - sizeof(VIP_VI_HANDLE) - sizeof(int)];
} client_t; /* a multiple of 64 bytes */

static client_t* clients;
static VIP_NIC_HANDLE nic, control_nic;
static VIP_CQ_HANDLE cq;
static VIP_MEM_HANDLE memory;
static int lost;
static char* listener_name;

static void check(VIP_RETURN code, const char* what) {
    if (code == VIP_SUCCESS) return;
    fprintf(stderr, "%s returned %d\n", what, (int)code);
    exit(1);
}

/* The server ends here, with all its threads asleep in the library. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    (void)context;
    if (error->ErrorCode != VIP_ERROR_CONN_LOST) {
        fprintf(stderr, "asynchronous error %d\n", (int)error->ErrorCode);
        exit(1);
    }
    if (++lost == CLIENTS) exit(0);
}

static void open_all(char* name) {
    char* room;

    check(VipOpenNic(name, &nic), "VipOpenNic");
    check(VipOpenNic(name, &control_nic), "VipOpenNic, again");
    if (system("true") != 0) {
        fprintf(stderr, "system() failed\n");
        exit(1);
    }
    room = (char*)calloc(1, (CLIENTS + 1) * sizeof(client_t) + VIP_DESCRIPTOR_ALIGNMENT);
    if (room == NULL) exit(1);
    clients = (client_t*)(((unsigned long)room + VIP_DESCRIPTOR_ALIGNMENT - 1) &
                          ~(unsigned long)(VIP_DESCRIPTOR_ALIGNMENT - 1));
    check(VipRegisterMem(nic, clients, CLIENTS * sizeof(client_t), NULL, &memory),
          "VipRegisterMem");
    check(VipCreateCQ(nic, 4 * DEPTH * CLIENTS, &cq), "VipCreateCQ");
}

static void make_vi(client_t* c, VIP_CQ_HANDLE queue) {
    VIP_VI_ATTRIBUTES attributes;
    int i;

    memset(&attributes, 0, sizeof(attributes));
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = SIZE;
    check(VipCreateVi(nic, &attributes, queue, queue, &c->vi), "VipCreateVi");
    for (i = 0; i < DEPTH; ++i) {
        c->recvs[i].CS.SegCount = 1;
        c->recvs[i].DS[0].Local.Data.Address = c->in[i];
        c->recvs[i].DS[0].Local.Handle = memory;
        c->recvs[i].DS[0].Local.Length = SIZE;
        check(VipPostRecv(c->vi, &c->recvs[i], memory), "VipPostRecv");
    }
}

/* One message; the immediate data carries how many receives were posted again: the credits. */
static void post_send(client_t* c, const char* text, VIP_UINT32 credits) {
    VIP_DESCRIPTOR* d = &c->sends[c->next_send];
    char* out = c->out[c->next_send];

    c->next_send = (c->next_send + 1) % DEPTH;
    strcpy(out, text);
    d->CS.SegCount = 1;
    d->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
    d->CS.ImmediateData = credits;
    d->CS.Length = (VIP_UINT32)strlen(out) + 1;
    d->DS[0].Local.Data.Address = out;
    d->DS[0].Local.Handle = memory;
    d->DS[0].Local.Length = d->CS.Length;
    check(VipPostSend(c->vi, d, memory), "VipPostSend");
}

static void name_address(char* bytes, const char* host, const char* name) {
    VIP_NET_ADDRESS* address = (VIP_NET_ADDRESS*)bytes;

    check(VipNSGetHostByName(control_nic, (VIP_CHAR*)host, address, 0), "VipNSGetHostByName");
    address->DiscriminatorLen = (VIP_UINT16)strlen(name);
    memcpy(address->HostAddress + address->HostAddressLen, name, address->DiscriminatorLen);
}

/* Echoes whatever comes to whomever it came from. */
static void* serve(void* unused) {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_recv;
    VIP_DESCRIPTOR* d;
    client_t* c;
    char text[SIZE];

    (void)unused;
    for (;;) {
        check(VipCQWait(cq, VIP_INFINITE, &vi, &is_recv), "VipCQWait");
        for (c = clients; c->vi != vi; ++c) continue;
        if ((is_recv ? VipRecvDone(vi, &d) : VipSendDone(vi, &d)) != VIP_SUCCESS) {
            if (d->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR) continue; /* the client has gone */
            check(VIP_DESCRIPTOR_ERROR, "a descriptor");
        }
        if (!is_recv) continue;
        strcpy(text, (char*)d->DS[0].Local.Data.Address);
        d->CS.Length = SIZE;
        check(VipPostRecv(vi, d, memory), "VipPostRecv");
        post_send(c, text, 1); /* a credit is told of when the receive is there */
    }
    return NULL;
}

static void* listen_for_ever(void* unused) {
    char buffer[40], peer[40];
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    int i;

    (void)unused;
    name_address(buffer, "localhost", listener_name);
    for (i = 0; i < CLIENTS; ++i) {
        make_vi(&clients[i], cq);
        check(VipConnectWait(nic, (VIP_NET_ADDRESS*)buffer, VIP_INFINITE, (VIP_NET_ADDRESS*)peer,
                             &attributes, &connection),
              "VipConnectWait");
        check(VipConnectAccept(connection, clients[i].vi), "VipConnectAccept");
    }
    VipConnectWait(nic, (VIP_NET_ADDRESS*)buffer, VIP_INFINITE, (VIP_NET_ADDRESS*)peer, &attributes,
                   &connection);
    return NULL;
}

static void be_server(void) {
    pthread_t server, listener;

    check(VipErrorCallback(nic, NULL, on_error), "VipErrorCallback");
    if (pthread_create(&server, NULL, serve, NULL) != 0) exit(1);
    if (pthread_create(&listener, NULL, listen_for_ever, NULL) != 0) exit(1);
    pthread_join(server, NULL); /* never: see on_error() */
    exit(1);
}

static void be_client(const char* host) {
    char local[40], remote[40], text[64];
    VIP_VI_ATTRIBUTES attributes;
    VIP_DESCRIPTOR* d;
    VIP_RETURN code;
    int sent = 0, received = 0;
    VIP_UINT32 credits = DEPTH;

    make_vi(clients, NULL);
    name_address(local, "localhost", "client");
    name_address(remote, host, listener_name);
    do
        code = VipConnectRequest(clients->vi, (VIP_NET_ADDRESS*)local, (VIP_NET_ADDRESS*)remote,
                                 30000, &attributes);
    while (code == VIP_NO_MATCH);
    check(code, "VipConnectRequest");
    while (received < MESSAGES) {
        while (sent < MESSAGES && credits > 0) {
            sprintf(text, "message %d", sent++);
            post_send(clients, text, 0);
            check(VipSendWait(clients->vi, VIP_INFINITE, &d), "VipSendWait");
            --credits;
        }
        check(VipRecvWait(clients->vi, 30000, &d), "VipRecvWait");
        sprintf(text, "message %d", received++);
        if (strcmp((char*)d->DS[0].Local.Data.Address, text) != 0) {
            fprintf(stderr, "got %s\n", (char*)d->DS[0].Local.Data.Address);
            exit(1);
        }
        credits += d->CS.ImmediateData;
        d->CS.Length = SIZE;
        check(VipPostRecv(clients->vi, d, memory), "VipPostRecv");
    }
    exit(0); /* without a word; the library says goodbye */
}

int main(int argc, char** argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: old_server server|client NIC HOST NAME\n");
        return 2;
    }
    listener_name = argv[4];
    open_all(argv[2]);
    if (strcmp(argv[1], "server") == 0)
        be_server();
    else
        be_client(argv[3]);
    return 0;
}
