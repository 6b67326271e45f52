/*
 * A peer for the tests of SRTP: libsrtp2 as a filter.
 *
 *     peer protect|unprotect SUITE KEYHEX rtp|rtcp [WINDOW]
 *
 * KEYHEX is the master key and its salt. Standard input holds packets, each after its length in four
 * octets, big-endian. Standard output gets one record for each: the packet that libsrtp made of it,
 * in the same form, or 0xffffffff and libsrtp's error code, four octets each.
 *
 *     cc -O2 -o peer peer.c $(pkg-config --cflags --libs libsrtp2)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <srtp2/srtp.h>

#define PACKET_MAX 65536
/* Octets that libsrtp may append to a packet: tag, SRTCP index, master key identifier. */
#define TRAILER_MAX (SRTP_MAX_TRAILER_LEN + 4)
#define REFUSED 0xffffffffu

typedef void set_policy(srtp_crypto_policy_t *policy);

/* A macro of libsrtp's, as a function. */
static void aes_128_80(srtp_crypto_policy_t *policy)
{
    srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(policy);
}

/*
 * RFC 3711 section 5.2 has 80-bit tags on SRTCP whatever those on SRTP are, and section 3.4 has
 * SRTCP authenticated always: hence the two columns.
 */
static const struct suite {
    const char *name;
    set_policy *rtp, *rtcp;
} suites[] = {
    { "AES_CM_128_HMAC_SHA1_80", aes_128_80, aes_128_80 },
    { "AES_CM_128_HMAC_SHA1_32", srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32, aes_128_80 },
    { "AES_192_CM_HMAC_SHA1_80", srtp_crypto_policy_set_aes_cm_192_hmac_sha1_80,
      srtp_crypto_policy_set_aes_cm_192_hmac_sha1_80 },
    { "AES_192_CM_HMAC_SHA1_32", srtp_crypto_policy_set_aes_cm_192_hmac_sha1_32,
      srtp_crypto_policy_set_aes_cm_192_hmac_sha1_80 },
    { "AES_256_CM_HMAC_SHA1_80", srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80,
      srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80 },
    { "AES_256_CM_HMAC_SHA1_32", srtp_crypto_policy_set_aes_cm_256_hmac_sha1_32,
      srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80 },
    { "AEAD_AES_128_GCM", srtp_crypto_policy_set_aes_gcm_128_16_auth,
      srtp_crypto_policy_set_aes_gcm_128_16_auth },
    { "AEAD_AES_256_GCM", srtp_crypto_policy_set_aes_gcm_256_16_auth,
      srtp_crypto_policy_set_aes_gcm_256_16_auth },
    { "NULL_HMAC_SHA1_80", srtp_crypto_policy_set_null_cipher_hmac_sha1_80,
      srtp_crypto_policy_set_null_cipher_hmac_sha1_80 },
    { "AES_CM_128_NULL_AUTH", srtp_crypto_policy_set_aes_cm_128_null_auth, aes_128_80 },
};

static void fail(const char *why)
{
    fprintf(stderr, "peer: %s\n", why);
    exit(2);
}

static const struct suite *find_suite(const char *name)
{
    for (size_t n = 0; n < sizeof suites / sizeof *suites; n++)
        if (strcmp(suites[n].name, name) == 0)
            return &suites[n];
    fail("unknown suite");
    return NULL;
}

static size_t parse_hex(const char *hex, unsigned char *octets, size_t max)
{
    size_t len = strlen(hex) / 2;
    if (len > max || strlen(hex) % 2 != 0)
        fail("the key is too long, or has an odd number of digits");
    for (size_t n = 0; n < len; n++) {
        unsigned octet;
        if (sscanf(hex + 2 * n, "%2x", &octet) != 1)
            fail("the key is not hexadecimal");
        octets[n] = (unsigned char)octet;
    }
    return len;
}

/* One session for all sources, each with its own index and replay window. */
static srtp_t open_session(int protects, const struct suite *suite, const char *key_hex,
                           unsigned long window)
{
    unsigned char key[SRTP_MAX_KEY_LEN] = { 0 };
    srtp_policy_t policy;
    memset(&policy, 0, sizeof policy);
    suite->rtp(&policy.rtp);
    suite->rtcp(&policy.rtcp);
    if (parse_hex(key_hex, key, sizeof key) != (size_t)policy.rtp.cipher_key_len)
        fail("the key does not have the length of the suite's keys");
    policy.ssrc.type = protects ? ssrc_any_outbound : ssrc_any_inbound;
    policy.key = key;
    policy.window_size = window;
    srtp_t session;
    if (srtp_init() != srtp_err_status_ok || srtp_create(&session, &policy) != srtp_err_status_ok)
        fail("libsrtp refuses the policy");
    return session;
}

/* Returns 0 at the end of the input. */
static int read_word(uint32_t *word)
{
    unsigned char octets[4];
    if (fread(octets, 1, sizeof octets, stdin) != sizeof octets)
        return 0;
    *word = (uint32_t)octets[0] << 24 | (uint32_t)octets[1] << 16 | (uint32_t)octets[2] << 8 |
            octets[3];
    return 1;
}

static void write_word(uint32_t word)
{
    unsigned char octets[4] = { word >> 24, word >> 16, word >> 8, word };
    fwrite(octets, 1, sizeof octets, stdout);
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 6)
        fail("usage: peer protect|unprotect SUITE KEYHEX rtp|rtcp [WINDOW]");
    int protects = strcmp(argv[1], "protect") == 0, is_rtp = strcmp(argv[4], "rtp") == 0;
    if ((!protects && strcmp(argv[1], "unprotect") != 0) ||
        (!is_rtp && strcmp(argv[4], "rtcp") != 0))
        fail("usage: peer protect|unprotect SUITE KEYHEX rtp|rtcp [WINDOW]");
    unsigned long window = argc == 6 ? strtoul(argv[5], NULL, 10) : 128;
    srtp_t session = open_session(protects, find_suite(argv[2]), argv[3], window);
    srtp_err_status_t (*convert)(srtp_t, void *, int *) =
        protects ? (is_rtp ? srtp_protect : srtp_protect_rtcp)
                 : (is_rtp ? srtp_unprotect : srtp_unprotect_rtcp);

    /* libsrtp reads headers as words. */
    static uint32_t words[(PACKET_MAX + TRAILER_MAX) / 4];
    unsigned char *packet = (unsigned char *)words;
    setvbuf(stdin, NULL, _IOFBF, 1 << 18);
    setvbuf(stdout, NULL, _IOFBF, 1 << 18);
    uint32_t word;
    while (read_word(&word)) {
        if (word > PACKET_MAX || fread(packet, 1, word, stdin) != word)
            fail("a record is cut short");
        int len = (int)word;
        srtp_err_status_t status = convert(session, packet, &len);
        if (status != srtp_err_status_ok) {
            write_word(REFUSED);
            write_word((uint32_t)status);
        } else {
            write_word((uint32_t)len);
            fwrite(packet, 1, (size_t)len, stdout);
        }
    }
    if (fflush(stdout) != 0)
        fail("the output cannot be written");
    srtp_dealloc(session);
    srtp_shutdown();
    return 0;
}
