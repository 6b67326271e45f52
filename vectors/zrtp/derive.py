#!/usr/bin/env python3
"""Makes derivations.json: the key derivations of RFC 6189 (sections 4.3.1, 4.4, 4.5, 4.6 and 9) and
of the draft's key encapsulation, with nothing but the standard library. Usage: derive.py > FILE"""
import hashlib
import hmac
import json
import sys


def fill(name, size):
    """Octets that look random and are the same each time."""
    return hashlib.shake_128(name.encode()).digest(size)


def prefixed(secret):
    return len(secret).to_bytes(4, "big") + secret


def hmac_of(algorithm, key, message):
    return hmac.new(key, message, algorithm).digest()


def kdf(algorithm, key, label, context, bits):
    message = (1).to_bytes(4, "big") + label + b"\0" + context + bits.to_bytes(4, "big")
    return hmac_of(algorithm, key, message)[: bits // 8]


def rest(algorithm, s0, context, key_bits):
    """Everything that follows from s0."""
    hash_bits = 8 * hashlib.new(algorithm).digest_size
    wanted = {
        "session_key": (b"ZRTP Session Key", hash_bits),
        "sas_hash": (b"SAS", 256),
        "exported_key": (b"Exported key", hash_bits),
        "rs1": (b"retained secret", 256),
    }
    for short, role in (("i", b"Initiator"), ("r", b"Responder")):
        wanted["srtpkey" + short] = (role + b" SRTP master key", key_bits)
        wanted["srtpsalt" + short] = (role + b" SRTP master salt", 112)
        wanted["mackey" + short] = (role + b" HMAC key", hash_bits)
        wanted["zrtpkey" + short] = (role + b" ZRTP key", key_bits)
    return {
        name: kdf(algorithm, s0, label, context, bits).hex()
        for name, (label, bits) in wanted.items()
    }


def base32(value):
    alphabet = "ybndrfg8ejkmcpqxot1uwisza345h769"
    bits = format(value, "032b")[:20]
    return "".join(alphabet[int(bits[at : at + 5], 2)] for at in range(0, 20, 5))


def agreement(algorithm, is_kem, present, key_bits):
    name = f"{algorithm}{is_kem}{present}"
    zids = [fill(name + "zid" + role, 12) for role in "ir"]
    hellos = [fill(name + "hello" + role, 100) for role in "ir"]
    commit, part1, part2 = (fill(name + part, 116) for part in ("commit", "part1", "part2"))
    result = fill(name + "result", 48)
    lens = {"s1": 32, "s2": 20, "s3": 32}
    secrets = {s: fill(name + s, lens[s]) if s in present else b"" for s in lens}
    messages = (hellos if is_kem else hellos[1:]) + [commit, part1, part2]
    context = b"".join(zids) + hashlib.new(algorithm, b"".join(messages)).digest()
    parts = (1).to_bytes(4, "big") + result + b"ZRTP-HMAC-KDF" + context
    s0 = hashlib.new(algorithm, parts + b"".join(map(prefixed, secrets.values()))).digest()
    derived = rest(algorithm, s0, context, key_bits)
    hvi = hashlib.new(algorithm, part2 + hellos[1]).digest()[:32]
    octets = dict(
        zidi=zids[0], zidr=zids[1], helloi=hellos[0], hellor=hellos[1], commit=commit,
        part1=part1, part2=part2, result=result, context=context, s0=s0, hvi=hvi, **secrets,
    )
    value = int(derived["sas_hash"][:8], 16)
    new_session = kdf(
        algorithm, bytes.fromhex(derived["session_key"]), b"New ZRTP Session",
        b"".join(zids), 8 * hashlib.new(algorithm).digest_size,
    )
    return {
        "hash": algorithm, "is_kem": is_kem, "key_bits": key_bits, "base32": base32(value),
        "derived": derived, "new_session": new_session.hex(),
        **{field: value.hex() for field, value in octets.items()},
    }


def without_agreement(algorithm, mode, key_bits):
    """Preshared and Multistream mode."""
    name = algorithm + mode
    zidi, zidr = fill(name + "zidi", 12), fill(name + "zidr", 12)
    hellor, commit = fill(name + "hello", 100), fill(name + "commit", 100)
    key = fill(name + "key", hashlib.new(algorithm).digest_size)
    context = zidi + zidr + hashlib.new(algorithm, hellor + commit).digest()
    label = {"Prsh": b"ZRTP PSK", "Mult": b"ZRTP MSK"}[mode]
    s0 = kdf(algorithm, key, label, context, 8 * hashlib.new(algorithm).digest_size)
    octets = dict(zidi=zidi, zidr=zidr, hellor=hellor, commit=commit, key=key, s0=s0)
    return {
        "hash": algorithm, "mode": mode, "label": label.decode(), "key_bits": key_bits,
        "derived": rest(algorithm, s0, context, key_bits),
        **{field: value.hex() for field, value in octets.items()},
    }


def secret_ids(algorithm):
    lens = {"rs1": 32, "rs2": 32, "aux": 20, "pbx": 32}
    secrets = {s: fill(algorithm + "secret" + s, lens[s]) for s in lens}
    h3 = fill(algorithm + "h3", 32)
    case = {"hash": algorithm, "h3": h3.hex(), **{s: v.hex() for s, v in secrets.items()}}
    for role in (b"Initiator", b"Responder"):
        case[role.decode()] = [
            hmac_of(algorithm, value, h3 if s == "aux" else role)[:8].hex()
            for s, value in secrets.items()
        ]
    case["preshared"] = []
    for aux in (True, False):
        for pbx in (True, False):
            used = [secrets["rs1"], secrets["aux"] if aux else b"", secrets["pbx"] if pbx else b""]
            key = hashlib.new(algorithm, b"".join(map(prefixed, used))).digest()
            key_id = hmac_of(algorithm, key, b"Prsh")[:8]
            case["preshared"].append(
                {"aux": aux, "pbx": pbx, "key": key.hex(), "key_id": key_id.hex()}
            )
    return case


def chain():
    h0 = fill("h0", 32)
    images = [h0]
    for _ in range(3):
        images.append(hashlib.sha256(images[-1]).digest())
    message = fill("message", 84)
    macs = [hmac_of("sha256", image, message)[:8].hex() for image in images[:3]]
    return {"images": [image.hex() for image in images], "message": message.hex(), "macs": macs}


def crc32c(octets):
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    crc = 0xFFFFFFFF
    for octet in octets:
        crc = crc >> 8 ^ table[(crc ^ octet) & 255]
    return crc ^ 0xFFFFFFFF


def main():
    assert crc32c(b"123456789") == 0xE3069283
    subsets = [[], ["s1"], ["s2"], ["s1", "s3"], ["s1", "s2", "s3"]]
    vectors = {
        "agreements": [
            agreement(algorithm, is_kem, present, (128, 192, 256)[n % 3])
            for algorithm in ("sha256", "sha384")
            for is_kem in (False, True)
            for n, present in enumerate(subsets)
        ],
        "without": [
            without_agreement(algorithm, mode, bits)
            for algorithm in ("sha256", "sha384")
            for mode in ("Prsh", "Mult")
            for bits in (128, 256)
        ],
        "secret_ids": [secret_ids(algorithm) for algorithm in ("sha256", "sha384")],
        "chain": chain(),
        "packets": [
            {"packet": packet.hex(), "crc": crc32c(packet).to_bytes(4, "little").hex()}
            for size in (12, 100, 1172)
            for packet in [b"\x10\0" + fill(str(size), 2) + b"ZRTP\0\0\0\7" + fill("m", size)]
        ],
    }
    json.dump(vectors, sys.stdout, indent=0)
    print()


main()
