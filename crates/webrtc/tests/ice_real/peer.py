"""An agent of aioice. Writes its credentials and candidates, reads those of the peer, and returns all data."""
import asyncio
import sys

import aioice
import aioice.ice


async def main(role, peer, relay=None):
    if relay:
        server = (relay, 3478)
        options = {"turn_server": server, "turn_username": "user", "turn_password": "secret"}
    else:
        aioice.ice.get_host_addresses = lambda *_, **__: ["127.0.0.1"]
        options = {}
    connection = aioice.Connection(ice_controlling=role == "controlling", **options)
    connection.remote_is_lite = peer == "lite"
    await connection.gather_candidates()
    print(connection.local_username, connection.local_password)
    for candidate in connection.local_candidates:
        print(candidate.to_sdp())
    print("end", flush=True)
    loop = asyncio.get_running_loop()

    async def line():
        return (await loop.run_in_executor(None, sys.stdin.readline)).strip()

    connection.remote_username, connection.remote_password = (await line()).split()
    while (text := await line()) != "end":
        await connection.add_remote_candidate(aioice.Candidate.from_sdp(text))
    await connection.add_remote_candidate(None)
    await connection.connect()
    print("connected", flush=True)
    while True:
        data = await connection.recv()
        if data == b"bye":
            break
        await connection.send(data)
    await connection.close()


asyncio.run(main(*sys.argv[1:]))
