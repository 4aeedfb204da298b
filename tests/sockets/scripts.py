"""Small programs in Python, JavaScript, Java and C: see programs.py."""

ECHO_SERVER = '''
import os, socket, sys
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    if os.fork() == 0:
        while data := connection.recv(65536):
            connection.sendall(data)
        os._exit(0)
    connection.close()
'''
ECHO_CLIENT = '''
import random, socket, subprocess, sys
connection = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
draw = random.Random(7)
for turn in range(300):
    sent = draw.randbytes(draw.randrange(1, 20000))
    connection.sendall(sent)
    got = b''
    while len(got) < len(sent):
        part = connection.recv(65536)
        assert part, 'ended early'
        got += part
    assert got == sent, turn
print(subprocess.run([sys.argv[2], 'sockets', 'status'], capture_output=True, text=True).stdout)
'''

ASYNCIO_SERVER = '''
import asyncio, sys
async def answer(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(answer, '127.0.0.1', int(sys.argv[1]))
    await server.serve_forever()
asyncio.run(main())
'''
ASYNCIO_CLIENT = '''
import asyncio, random, sys
async def ask(port, seed):
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    draw = random.Random(seed)
    for _ in range(60):
        sent = draw.randbytes(draw.randrange(1, 30000))
        writer.write(sent)
        await writer.drain()
        assert await reader.readexactly(len(sent)) == sent
    writer.write_eof()
    assert await reader.read() == b''
    writer.close()
async def main():
    await asyncio.gather(*(ask(int(sys.argv[1]), seed) for seed in range(10)))
    print('checked')
asyncio.run(main())
'''

MEMCACHED_CLIENT = '''
import random, socket, sys
files = []
for _ in range(8):
    connection = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
    files.append(connection)
draw = random.Random(3)
kept = {}
def line(connection, got=b''):
    while not got.endswith(b'\\r\\n'):
        byte = connection.recv(1)
        assert byte, 'ended early'
        got += byte
    return got
def exactly(connection, count):
    got = b''
    while len(got) < count:
        part = connection.recv(count - len(got))
        assert part, 'ended early'
        got += part
    return got
for turn in range(600):
    connection = draw.choice(files)
    key = f'key{draw.randrange(50)}'.encode()
    if draw.random() < 0.5:
        value = draw.randbytes(draw.choice([1, 10, 1000, 100000]))
        connection.sendall(b'set %s 0 0 %d\\r\\n%s\\r\\n' % (key, len(value), value))
        assert line(connection) == b'STORED\\r\\n'
        kept[key] = value
    else:
        connection.sendall(b'get %s\\r\\n' % key)
        answer = line(connection)
        if key not in kept:
            assert answer == b'END\\r\\n', answer
            continue
        assert answer == b'VALUE %s 0 %d\\r\\n' % (key, len(kept[key])), answer
        assert exactly(connection, len(kept[key]) + 7) == kept[key] + b'\\r\\nEND\\r\\n', turn
print('checked')
'''

NODE_SERVER = '''
const http = require('http'), fs = require('fs');
const content = fs.readFileSync('file');
http.createServer((asked, answer) => {
    if (asked.method === 'GET') return answer.end(content);
    const parts = [];
    asked.on('data', (part) => parts.push(part));
    asked.on('end', () => answer.end(Buffer.concat(parts)));
}).listen(Number(process.argv[2]), '127.0.0.1');
'''
NODE_CLIENT = '''
const http = require('http'), fs = require('fs');
const content = fs.readFileSync('file');
const agent = new http.Agent({keepAlive: true, maxSockets: 4});
let left = 40;
for (let turn = 0; turn < 40; ++turn) {
    const body = turn % 2 ? content.subarray(0, turn * 5000 + 1) : null;
    const asked = http.request({port: Number(process.argv[2]), host: '127.0.0.1', agent,
                                method: body ? 'POST' : 'GET'}, (answer) => {
        const parts = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('end', () => {
            if (!Buffer.concat(parts).equals(body || content)) throw new Error('turn ' + turn);
            if (--left === 0) { console.log('checked'); agent.destroy(); }
        });
    });
    asked.end(body || undefined);
}
'''

JAVA_PAIR = '''
import java.io.*;
import java.net.*;
import java.util.*;
class Pair {
    static void serve(int port) throws Exception {
        try (ServerSocket listener = new ServerSocket(port, 50, InetAddress.getLoopbackAddress())) {
            while (true) {
                Socket one = listener.accept();
                new Thread(() -> {
                    try (one) { one.getInputStream().transferTo(one.getOutputStream()); }
                    catch (IOException ended) { System.err.println(ended); }
                }).start();
            }
        }
    }
    static void ask(int port, int seed) throws Exception {
        Random draw = new Random(seed);
        try (Socket one = new Socket(InetAddress.getLoopbackAddress(), port)) {
            for (int turn = 0; turn < 50; ++turn) {
                byte[] sent = new byte[draw.nextInt(20000) + 1];
                draw.nextBytes(sent);
                one.getOutputStream().write(sent);
                byte[] got = one.getInputStream().readNBytes(sent.length);
                if (!Arrays.equals(sent, got)) throw new IllegalStateException("turn " + turn);
            }
        }
    }
    public static void main(String[] words) throws Exception {
        int port = Integer.parseInt(words[1]);
        if (words[0].equals("serve")) { serve(port); return; }
        for (int seed = 0; seed < 4; ++seed) ask(port, seed);
        System.out.println("checked");
    }
}
'''

# An ONC RPC pair that needs no rpcbind: the server registers with none, the client knows the port.
RPC_PAIR = '''
#include <rpc/rpc.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { program = 0x20000099, version = 1, procedure = 1, most = 60000 };
struct blob { u_int count; char *bytes; };
static bool_t xdr_blob(XDR *xdr, struct blob *blob) {
    return xdr_bytes(xdr, &blob->bytes, &blob->count, most);
}
static void answer(struct svc_req *asked, SVCXPRT *to) {
    struct blob got = {0, NULL};
    if (asked->rq_proc == 0) { svc_sendreply(to, (xdrproc_t)xdr_void, NULL); return; }
    if (!svc_getargs(to, (xdrproc_t)xdr_blob, (caddr_t)&got)) { svcerr_decode(to); return; }
    for (u_int at = 0; at < got.count; ++at) got.bytes[at] ^= 0x5A;
    svc_sendreply(to, (xdrproc_t)xdr_blob, (caddr_t)&got);
    svc_freeargs(to, (xdrproc_t)xdr_blob, (caddr_t)&got);
}
static int client(struct sockaddr_in address) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) return 1;
    CLIENT *to = clnttcp_create(&address, program, version, &fd, 0, 0);
    if (to == NULL) return 2;
    struct timeval limit = {60, 0};
    for (int turn = 0; turn < 2000; ++turn)
        if (clnt_call(to, 0, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, limit)) return 3;
    static char bytes[most];
    for (u_int turn = 0; turn < 300; ++turn) {
        struct blob sent = {turn * 200, bytes}, got = {0, NULL};
        for (u_int at = 0; at < sent.count; ++at) bytes[at] = (char)(turn * 31 + at * 7);
        if (clnt_call(to, procedure, (xdrproc_t)xdr_blob, (caddr_t)&sent, (xdrproc_t)xdr_blob,
                      (caddr_t)&got, limit)) return 4;
        if (got.count != sent.count) return 5;
        for (u_int at = 0; at < got.count; ++at)
            if ((got.bytes[at] ^ 0x5A) != bytes[at]) return 6;
        clnt_freeres(to, (xdrproc_t)xdr_blob, (caddr_t)&got);
    }
    puts("checked");
    return 0;
}
int main(int count, char **words) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((unsigned short)atoi(words[1]));
    if (count > 2) return client(address);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 10) < 0) return 1;
    SVCXPRT *from = svc_vc_create(fd, 0, 0);
    if (from == NULL || !svc_register(from, program, version, answer, 0)) return 2;
    svc_run();
    return 3;
}
'''

# Each thread of wrk has a world of its own; done() asks them.
WRK_CHECK = '''
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init()
    right, wrong = 0, 0
    wanted = io.open('small', 'rb'):read('*a')
end
function response(status, headers, body)
    if status == 200 and body == wanted then right = right + 1 else wrong = wrong + 1 end
end
function done(summary)
    local all, errors = 0, summary.errors
    local bad = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    for _, thread in ipairs(threads) do
        all, bad = all + thread:get('right'), bad + thread:get('wrong')
    end
    print('checked ' .. all .. ' ' .. bad)
end
'''

REDIS_CLIENT = '''
import selectors, socket, sys
port, connections, keys = (int(word) for word in sys.argv[1:])
ready = selectors.DefaultSelector()
def ask(one):
    key = one['at'] % keys
    one['at'] += 1
    one['wanted'] = b'$%d\\r\\n%d\\r\\n' % (len(str(key * key)), key * key)
    one['got'] = b''
    one['socket'].sendall(b'*2\\r\\n$3\\r\\nGET\\r\\n$%d\\r\\n%d\\r\\n' % (len(str(key)), key))
for number in range(connections):
    one = {'socket': socket.create_connection(('127.0.0.1', port)), 'at': number * 37, 'left': 200}
    ready.register(one['socket'], selectors.EVENT_READ, one)
    ask(one)
while ready.get_map():
    for key, _ in ready.select():
        one = key.data
        part = one['socket'].recv(4096)
        assert part, 'ended early'
        one['got'] += part
        if len(one['got']) < len(one['wanted']):
            continue
        assert one['got'] == one['wanted'], one
        one['left'] -= 1
        if one['left'] > 0:
            ask(one)
        else:
            ready.unregister(one['socket'])
            one['socket'].close()
print('checked')
'''
