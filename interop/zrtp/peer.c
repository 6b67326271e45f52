/*
 * A peer for the tests of ZRTP: bzrtp on ports of the loopback interface.
 *
 *     peer --remote PORT [--remote PORT] [--kex LIST] [--cipher LIST] [--hash LIST]
 *          [--auth LIST] [--sas LIST] [--cache FILE [--forget]] [--verify-sas] [--passive]
 *          [--loss PERCENT] [--seed N] [--aux TEXT]
 *
 * LIST is names of ZRTP, separated by commas, the preferred first. There is a stream for each
 * --remote; the second begins when the first is secure. The first line on standard output is
 * {"local":[PORT,...],"hello_hash":HEX}, with the hash of the first stream's Hello. Once all
 * streams are secure, or one has failed, it prints a JSON object for each stream and
 * {"ok":true|false}; it continues to answer until standard input ends, or for 30 seconds.
 *
 *     cc -O2 -o peer peer.c $(pkg-config --cflags --libs libbzrtp bctoolbox sqlite3)
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bzrtp/bzrtp.h>
#include <sqlite3.h>

/* The limit of bzrtp. */
#define STREAMS_MAX 2
#define ALGORITHMS_MAX 7
#define PACKET_MAX 4096
#define TIME_LIMIT_MS 30000
#define PAUSE_MS 3
/* The offset of the message type in a packet. */
#define TYPE_AT 16

struct name {
    uint8_t id;
    const char *name;
};

static const struct name key_agreements[] = {
    { ZRTP_KEYAGREEMENT_X255, "X255" }, { ZRTP_KEYAGREEMENT_X448, "X448" },
    { ZRTP_KEYAGREEMENT_DH3k, "DH3k" }, { ZRTP_KEYAGREEMENT_DH2k, "DH2k" },
    { ZRTP_KEYAGREEMENT_Mult, "Mult" }, { 0, NULL },
};
static const struct name ciphers[] = {
    { ZRTP_CIPHER_AES1, "AES1" }, { ZRTP_CIPHER_AES3, "AES3" }, { 0, NULL },
};
static const struct name hashes[] = {
    { ZRTP_HASH_S256, "S256" }, { ZRTP_HASH_S384, "S384" }, { 0, NULL },
};
static const struct name auth_tags[] = {
    { ZRTP_AUTHTAG_HS32, "HS32" }, { ZRTP_AUTHTAG_HS80, "HS80" }, { 0, NULL },
};
static const struct name sas_types[] = {
    { ZRTP_SAS_B32, "B32" }, { ZRTP_SAS_B256, "B256" }, { 0, NULL },
};

/* The options with lists, and their types in bzrtp. */
static const struct kind {
    const char *option;
    uint8_t type;
    const struct name *names;
} kinds[] = {
    { "--kex", ZRTP_KEYAGREEMENT_TYPE, key_agreements },
    { "--cipher", ZRTP_CIPHERBLOCK_TYPE, ciphers },
    { "--hash", ZRTP_HASH_TYPE, hashes },
    { "--auth", ZRTP_AUTHTAG_TYPE, auth_tags },
    { "--sas", ZRTP_SAS_TYPE, sas_types },
};
#define KINDS (sizeof kinds / sizeof kinds[0])

struct stream {
    int socket;
    uint16_t remote;
    uint32_t ssrc;
    int is_begun, is_secure;
    const char *role;
    /* What is printed once the stream is secure. */
    char agreed[1200];
};

static struct {
    struct stream streams[STREAMS_MAX];
    int count;
    const char *lists[KINDS], *cache, *aux;
    int forgets, verifies, is_passive;
    double loss;
    uint64_t random;
} peer = { .random = 1 };

static void fail(const char *why)
{
    fprintf(stderr, "bzrtp peer: %s\n", why);
    exit(2);
}

static uint64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Whether the next packet is lost (xorshift64*). */
static int is_lost(void)
{
    peer.random ^= peer.random >> 12;
    peer.random ^= peer.random << 25;
    peer.random ^= peer.random >> 27;
    uint64_t high = (peer.random * 2685821657736338717u) >> 40;
    return (double)high / (1 << 24) * 100 < peer.loss;
}

static const char *name_of(const struct name *names, uint8_t id)
{
    while (names->name && names->id != id)
        names++;
    return names->name ? names->name : "?";
}

static void write_hex(char *out, const uint8_t *octets, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sprintf(out + 2 * i, "%02x", octets[i]);
    out[2 * len] = 0;
}

static int on_send(void *data, const uint8_t *packet, uint16_t len)
{
    struct stream *stream = data;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(stream->remote),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (!is_lost())
        sendto(stream->socket, packet, len, 0, (struct sockaddr *)&to, sizeof to);
    return 0;
}

static int on_keys(void *data, const bzrtpSrtpSecrets_t *keys, uint8_t part)
{
    (void)data, (void)keys, (void)part;
    return 0;
}

static int on_secure(void *data, const bzrtpSrtpSecrets_t *keys, int32_t verified)
{
    struct stream *stream = data;
    char self_key[65], self_salt[65], peer_key[65], peer_salt[65];
    if (keys->selfSrtpKeyLength > 32 || keys->selfSrtpSaltLength > 32 ||
        keys->peerSrtpKeyLength > 32 || keys->peerSrtpSaltLength > 32)
        fail("a key or salt is longer than 32 octets");
    write_hex(self_key, keys->selfSrtpKey, keys->selfSrtpKeyLength);
    write_hex(self_salt, keys->selfSrtpSalt, keys->selfSrtpSaltLength);
    write_hex(peer_key, keys->peerSrtpKey, keys->peerSrtpKeyLength);
    write_hex(peer_salt, keys->peerSrtpSalt, keys->peerSrtpSaltLength);
    snprintf(stream->agreed, sizeof stream->agreed,
             ",\"kex\":\"%s\",\"cipher\":\"%s\",\"hash\":\"%s\",\"auth\":\"%s\","
             "\"sas_type\":\"%s\",\"sas\":\"%s\",\"self_key\":\"%s\",\"self_salt\":\"%s\","
             "\"peer_key\":\"%s\",\"peer_salt\":\"%s\",\"verified\":%d,"
             "\"cache_mismatch\":%d,\"aux_mismatch\":%d",
             name_of(key_agreements, keys->keyAgreementAlgo), name_of(ciphers, keys->cipherAlgo),
             name_of(hashes, keys->hashAlgo), name_of(auth_tags, keys->authTagAlgo),
             name_of(sas_types, keys->sasAlgo), keys->sas ? keys->sas : "", self_key, self_salt,
             peer_key, peer_salt, verified, keys->cacheMismatch, keys->auxSecretMismatch);
    stream->is_secure = 1;
    return 0;
}

static void offer(bzrtpContext_t *context, const struct kind *kind, const char *list)
{
    uint8_t ids[ALGORITHMS_MAX], count = 0;
    char copy[64];
    snprintf(copy, sizeof copy, "%s", list);
    for (char *one = strtok(copy, ","); one; one = strtok(NULL, ",")) {
        const struct name *name = kind->names;
        while (name->name && strcasecmp(name->name, one))
            name++;
        if (!name->name || count == ALGORITHMS_MAX)
            fail("an algorithm is unknown, or too many are listed");
        ids[count++] = name->id;
    }
    bzrtp_setSupportedCryptoTypes(context, kind->type, ids, count);
}

/* Opens the cache; --forget deletes the secrets and leaves the ZID. */
static sqlite3 *open_cache(bzrtpContext_t *context)
{
    sqlite3 *cache;
    if (sqlite3_open(peer.cache, &cache))
        fail("the cache cannot be opened");
    int result = bzrtp_setZIDCache(context, cache, "sip:own@test", "sip:peer@test");
    if (result && result != BZRTP_CACHE_SETUP && result != BZRTP_CACHE_UPDATE)
        fail("the cache cannot be used");
    if (peer.forgets && sqlite3_exec(cache, "DELETE FROM zrtp", NULL, NULL, NULL))
        fail("the cache cannot be emptied");
    return cache;
}

static void open_streams(void)
{
    printf("{\"local\":[");
    for (int i = 0; i < peer.count; i++) {
        struct stream *stream = &peer.streams[i];
        struct sockaddr_in own = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t len = sizeof own;
        stream->socket = socket(AF_INET, SOCK_DGRAM, 0);
        stream->ssrc = 0xb0000000u + (uint32_t)i;
        stream->role = "";
        if (stream->socket < 0 || bind(stream->socket, (struct sockaddr *)&own, len) ||
            getsockname(stream->socket, (struct sockaddr *)&own, &len) ||
            fcntl(stream->socket, F_SETFL, O_NONBLOCK))
            fail("a socket cannot be opened");
        printf(i ? ",%d" : "%d", ntohs(own.sin_port));
    }
    printf("]");
}

static bzrtpContext_t *begin(sqlite3 **cache)
{
    bzrtpContext_t *context = bzrtp_createBzrtpContext();
    bzrtpCallbacks_t callbacks = { .bzrtp_sendData = on_send,
                                   .bzrtp_srtpSecretsAvailable = on_keys,
                                   .bzrtp_startSrtpSession = on_secure };
    if (peer.cache)
        *cache = open_cache(context);
    bzrtp_setCallbacks(context, &callbacks);
    for (size_t i = 0; i < KINDS; i++)
        if (peer.lists[i])
            offer(context, &kinds[i], peer.lists[i]);
    if (bzrtp_initBzrtpContext(context, peer.streams[0].ssrc))
        fail("a context cannot be created");
    if (peer.aux &&
        bzrtp_setAuxiliarySharedSecret(context, (const uint8_t *)peer.aux, strlen(peer.aux)))
        fail("the auxiliary secret cannot be set");
    return context;
}

/* Ends the first line; bzrtp puts a version and a space before the hash. */
static void print_hello_hash(bzrtpContext_t *context)
{
    uint8_t hash[80] = { 0 };
    if (bzrtp_getSelfHelloHash(context, peer.streams[0].ssrc, hash, sizeof hash))
        fail("the hash of the Hello is not available");
    const char *space = strchr((const char *)hash, ' ');
    printf(",\"hello_hash\":\"%s\"}\n", space ? space + 1 : (const char *)hash);
    fflush(stdout);
}

static void begin_stream(bzrtpContext_t *context, int i)
{
    struct stream *stream = &peer.streams[i];
    if (i && bzrtp_addChannel(context, stream->ssrc))
        fail("a second channel cannot be added");
    if (bzrtp_setClientData(context, stream->ssrc, stream) ||
        bzrtp_startChannelEngine(context, stream->ssrc))
        fail("a channel cannot be started");
    stream->is_begun = 1;
}

static void receive(bzrtpContext_t *context, struct stream *stream)
{
    uint8_t packet[PACKET_MAX];
    ssize_t len;
    while ((len = recv(stream->socket, packet, sizeof packet, 0)) >= 0) {
        if (len < TYPE_AT + 8 || !stream->is_begun)
            continue;
        const char *type = (const char *)packet + TYPE_AT;
        /* bzrtp commits once its Hello is acknowledged: until then it waits for the other. */
        if (peer.is_passive && !memcmp(type, "HelloACK", 8))
            continue;
        if (!memcmp(type, "DHPart1 ", 8) || !memcmp(type, "Confirm1", 8))
            stream->role = "initiator";
        if (!memcmp(type, "DHPart2 ", 8) || !memcmp(type, "Confirm2", 8))
            stream->role = "responder";
        /* Refused messages are ignored; the final report shows whether the agreement succeeded. */
        bzrtp_processMessage(context, stream->ssrc, packet, (uint16_t)len);
    }
}

static void report(int is_well)
{
    for (int i = 0; i < peer.count; i++) {
        struct stream *stream = &peer.streams[i];
        printf("{\"stream\":%d,\"secure\":%s,\"ssrc\":\"%08x\",\"role\":\"%s\"%s}\n", i,
               stream->is_secure ? "true" : "false", stream->ssrc, stream->role, stream->agreed);
    }
    printf("{\"ok\":%s,\"engine\":\"bzrtp\",\"streams\":%d}\n", is_well ? "true" : "false",
           peer.count);
    fflush(stdout);
}

/* Processes one stream; 0 if it has failed. */
static int process(bzrtpContext_t *context, int i)
{
    struct stream *stream = &peer.streams[i];
    if (!stream->is_begun && (!i || peer.streams[0].is_secure))
        begin_stream(context, i);
    if (!stream->is_begun)
        return 1;
    receive(context, stream);
    bzrtp_iterate(context, stream->ssrc, milliseconds());
    return bzrtp_getChannelStatus(context, stream->ssrc) != BZRTP_CHANNEL_ERROR;
}

/* Runs until standard input ends; 0 on failure. */
static int run(bzrtpContext_t *context)
{
    uint64_t end = milliseconds() + TIME_LIMIT_MS;
    int is_verified = 0, is_done = 0, is_well = 1;
    struct pollfd input = { .fd = 0, .events = POLLIN };
    while (is_well && milliseconds() < end) {
        int secure = 0;
        for (int i = 0; i < peer.count; i++) {
            is_well &= process(context, i);
            secure += peer.streams[i].is_secure;
        }
        if (peer.verifies && peer.streams[0].is_secure && !is_verified) {
            is_verified = 1;
            bzrtp_SASVerified(context);
        }
        if (is_well && secure == peer.count && !is_done) {
            is_done = 1;
            report(1);
        }
        char octet;
        if (poll(&input, 1, PAUSE_MS) > 0 && read(0, &octet, 1) <= 0)
            break;
    }
    if (!is_done)
        report(0);
    return is_well && is_done;
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        int *flag = !strcmp(name, "--forget")     ? &peer.forgets
                    : !strcmp(name, "--verify-sas") ? &peer.verifies
                    : !strcmp(name, "--passive")    ? &peer.is_passive
                                                    : NULL;
        if (flag) {
            *flag = 1;
            continue;
        }
        if (++i == argc)
            fail("an option has no value");
        const char *value = argv[i];
        size_t kind = 0;
        while (kind < KINDS && strcmp(kinds[kind].option, name))
            kind++;
        if (kind < KINDS)
            peer.lists[kind] = value;
        else if (!strcmp(name, "--remote") && peer.count < STREAMS_MAX)
            peer.streams[peer.count++].remote = (uint16_t)atoi(value);
        else if (!strcmp(name, "--cache"))
            peer.cache = value;
        else if (!strcmp(name, "--aux"))
            peer.aux = value;
        else if (!strcmp(name, "--loss"))
            peer.loss = atof(value);
        else if (!strcmp(name, "--seed"))
            peer.random = strtoull(value, NULL, 10) * 2 + 1;
        else
            fail("an option is unknown");
    }
    if (!peer.count)
        fail("--remote is needed");
}

int main(int argc, char **argv)
{
    sqlite3 *cache = NULL;
    read_options(argc, argv);
    open_streams();
    bzrtpContext_t *context = begin(&cache);
    print_hello_hash(context);
    int is_well = run(context);
    for (int i = 0; i < peer.count; i++)
        if (peer.streams[i].is_begun)
            bzrtp_destroyBzrtpContext(context, peer.streams[i].ssrc);
    if (cache)
        sqlite3_close(cache);
    return is_well ? 0 : 1;
}
