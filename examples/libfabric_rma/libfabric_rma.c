/* One process writes into the memory of another through libfabric, over whatever provider there is:
 *     FI_PROVIDER=via libfabric_rma show PORT
 *     FI_PROVIDER=via libfabric_rma put PORT TEXT
 * The owner of the memory says where it is, and its key, when it accepts. The write brings data,
 * which takes a receive of the owner's and so tells it that the text is there. */
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call) check(#call, (int)(call))
#define PATIENCE_MS 10000

static char text[256];
static uint64_t place[2]; /* address and key */
static struct fi_info *wanted, *info, *caller;
static struct fid_fabric* fabric;
static struct fid_domain* domain;
static struct fid_eq* events;
static struct fid_cq* queue;
static struct fid_ep* endpoint;
static struct fid_mr* memory;

static void check(const char* call, int result) {
    if (result < 0) fprintf(stderr, "libfabric_rma: %s: %s\n", call, fi_strerror(-result)), exit(1);
}

/* Waits for an event of connecting; an acceptance says where the memory is. */
static struct fi_info* await(uint32_t kind) {
    _Alignas(8) char room[sizeof(struct fi_eq_cm_entry) + sizeof place];
    struct fi_eq_cm_entry* entry = (struct fi_eq_cm_entry*)(void*)room;
    uint32_t event;
    CHECK(fi_eq_sread(events, &event, room, sizeof room, PATIENCE_MS, 0));
    if (event != kind) exit(1);
    if (event == FI_CONNECTED) memcpy(place, entry->data, sizeof place);
    return entry->info;
}

static void complete(void) {
    struct fi_cq_entry done;
    ssize_t got;
    while ((got = fi_cq_read(queue, &done, 1)) == -FI_EAGAIN) sched_yield();
    CHECK(got);
}

static void make_endpoint(struct fi_info* from) {
    CHECK(fi_endpoint(domain, from, &endpoint, NULL));
    CHECK(fi_ep_bind(endpoint, &events->fid, 0));
    CHECK(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV));
    CHECK(fi_enable(endpoint));
    CHECK(fi_mr_reg(domain, text, sizeof text, FI_WRITE | FI_REMOTE_WRITE, 0, 0, 0, &memory, NULL));
}

static void show(void) {
    static struct fid_pep* listener;
    CHECK(fi_passive_ep(fabric, info, &listener, NULL));
    CHECK(fi_pep_bind(listener, &events->fid, 0));
    CHECK(fi_listen(listener));
    make_endpoint(caller = await(FI_CONNREQ));
    place[0] = (uint64_t)(size_t)text;
    place[1] = fi_mr_key(memory);
    CHECK(fi_recv(endpoint, NULL, 0, NULL, 0, NULL)); /* for the data of the write */
    CHECK(fi_accept(endpoint, place, sizeof place));
    complete();
    puts(text);
}

static void put(const char* said) {
    make_endpoint(info);
    CHECK(fi_connect(endpoint, info->dest_addr, NULL, 0));
    await(FI_CONNECTED);
    strncpy(text, said, sizeof text - 1);
    CHECK(fi_writedata(endpoint, text, sizeof text, fi_mr_desc(memory), 1, 0, place[0], place[1],
                       NULL));
    complete();
    await(FI_SHUTDOWN); /* the owner has seen it and is gone */
}

int main(int count, char** words) {
    const int shows = count == 3 && strcmp(words[1], "show") == 0;
    if (!shows && (count != 4 || strcmp(words[1], "put") != 0))
        return fprintf(stderr, "usage: libfabric_rma show PORT | put PORT TEXT\n"), 2;
    wanted = fi_allocinfo();
    wanted->caps = FI_MSG | FI_RMA;
    wanted->mode = FI_RX_CQ_DATA;
    wanted->ep_attr->type = FI_EP_MSG;
    wanted->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    CHECK(fi_getinfo(FI_VERSION(1, 17), shows ? NULL : "127.0.0.1", words[2], shows ? FI_SOURCE : 0,
                     wanted, &info));
    CHECK(fi_fabric(info->fabric_attr, &fabric, NULL));
    CHECK(fi_domain(fabric, info, &domain, NULL));
    CHECK(fi_eq_open(fabric, &(struct fi_eq_attr){.wait_obj = FI_WAIT_UNSPEC}, &events, NULL));
    CHECK(fi_cq_open(domain, &(struct fi_cq_attr){.format = FI_CQ_FORMAT_CONTEXT}, &queue, NULL));
    shows ? show() : put(words[3]);
}
