"""Watches over WebSockets from Python, against a running server.

Usage: sockets.py URL CA-FILE TOKEN TOKEN-PROTOCOL. Prints what comes; ends
with code 0 behind the third event in JSON, for which it connects again as
often as the server closes the watch.
"""

import json
import struct
import sys
import time

import websocket


def connect(url, ca_file, **options):
    while True:
        try:
            return websocket.create_connection(url, sslopt={"ca_certs": ca_file}, timeout=60, **options)
        except ConnectionRefusedError:  # the server starts again
            time.sleep(0.05)


def main(url, ca_file, token, protocol):
    # In protobuf, with the token as a subprotocol.
    w = connect(url + "?watch=true", ca_file, subprotocols=[protocol, "x"], header=["Accept: application/vnd.kubernetes.protobuf"])
    code, data = w.recv_data()
    assert code == websocket.ABNF.OPCODE_BINARY and data[0] == 0x0A, data
    print("binary", data[2:2 + data[1]].decode(), flush=True)
    w.close()

    # In JSON, with the token in a header.
    version, seen = "", 0
    while seen < 3:
        w = connect(url + "?watch=true&resourceVersion=" + version, ca_file, header=["Authorization: Bearer " + token])
        while seen < 3:
            code, data = w.recv_data()
            if code == websocket.ABNF.OPCODE_CLOSE:
                print("closed", struct.unpack("!H", data[:2])[0], flush=True)
                break
            change = json.loads(data)
            version = change["object"]["metadata"]["resourceVersion"]
            print("text", change["type"], change["object"]["metadata"]["name"], flush=True)
            seen += 1
        w.close()


main(*sys.argv[1:])
