/*
 * How fast libsrtp2 protects: beside `cargo bench -p rushes-proto --bench srtp`, which builds and
 * runs it.
 *
 *     protect SUITE OCTETS MILLISECONDS
 *
 * One packet after the other, each with OCTETS of payload, on one core. Prints nanoseconds for each
 * packet.
 *
 *     cc -O2 -o protect protect.c $(pkg-config --cflags --libs libsrtp2)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <srtp2/srtp.h>

#define HEADER_LEN 12
#define PAYLOAD_MAX 9000
#define PACKETS 64
#define ROUND 4096

typedef void set_policy(srtp_crypto_policy_t *policy);

/* A macro of libsrtp's, as a function. */
static void aes_128_80(srtp_crypto_policy_t *policy)
{
    srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(policy);
}

static const struct suite {
    const char *name;
    set_policy *set;
} suites[] = {
    { "AES_CM_128_HMAC_SHA1_80", aes_128_80 },
    { "AES_256_CM_HMAC_SHA1_80", srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80 },
    { "AEAD_AES_128_GCM", srtp_crypto_policy_set_aes_gcm_128_16_auth },
    { "AEAD_AES_256_GCM", srtp_crypto_policy_set_aes_gcm_256_16_auth },
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void fail(const char *why)
{
    fprintf(stderr, "protect: %s\n", why);
    exit(2);
}

static srtp_t open_session(const char *name)
{
    static unsigned char key[SRTP_MAX_KEY_LEN] = { 0x2d };
    srtp_policy_t policy;
    memset(&policy, 0, sizeof policy);
    for (size_t n = 0; n < sizeof suites / sizeof *suites; n++)
        if (strcmp(suites[n].name, name) == 0)
            suites[n].set(&policy.rtp);
    if (policy.rtp.cipher_key_len == 0)
        fail("no such suite");
    policy.rtcp = policy.rtp;
    policy.ssrc.type = ssrc_any_outbound;
    policy.key = key;
    policy.window_size = 1024;
    srtp_t session;
    if (srtp_init() != srtp_err_status_ok || srtp_create(&session, &policy) != srtp_err_status_ok)
        fail("libsrtp refuses the policy");
    return session;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        fail("usage: protect SUITE OCTETS MILLISECONDS");
    srtp_t session = open_session(argv[1]);
    int payload = atoi(argv[2]);
    if (payload < 1 || payload > PAYLOAD_MAX)
        fail("1 to 9000 octets");
    /* libsrtp reads headers as words. */
    static uint32_t packets[PACKETS][(HEADER_LEN + PAYLOAD_MAX + SRTP_MAX_TRAILER_LEN) / 4 + 1];
    double start = now(), end = start + atof(argv[3]) * 1e6, time;
    uint32_t count = 0;
    do {
        for (int n = 0; n < ROUND; n++, count++) {
            unsigned char *packet = (unsigned char *)packets[count % PACKETS];
            unsigned char header[HEADER_LEN] = { 0x80, 96, (unsigned char)(count >> 8),
                                                 (unsigned char)count };
            memcpy(packet, header, HEADER_LEN);
            int len = HEADER_LEN + payload;
            if (srtp_protect(session, packet, &len) != srtp_err_status_ok)
                fail("libsrtp refuses a packet");
        }
        time = now();
    } while (time < end);
    printf("%.2f\n", (time - start) / count);
    srtp_dealloc(session);
    srtp_shutdown();
    return 0;
}
