"""Nodes of a distributed hash table on loopback, which know each other.

python3 dht_nodes.py COUNT [HOST]

Prints `ready PORT...` when each of them knows others; ends when its input does.
"""
import sys
import time
import warnings

import libtorrent as lt

# The one call that says how many nodes it knows is said to be old.
warnings.simplefilter("ignore", DeprecationWarning)
count = int(sys.argv[1])
host = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
sessions = []
ports = []
for index in range(count):
    session = lt.session(
        {
            "listen_interfaces": "%s:0" % (host if "." in host else "[%s]" % host),
            "enable_dht": True,
            "enable_lsd": False,
            "enable_upnp": False,
            "enable_natpmp": False,
            "dht_bootstrap_nodes": "",
            "dht_restrict_routing_ips": False,
            "dht_restrict_search_ips": False,
            "dht_ignore_dark_internet": False,
            "alert_mask": 0,
        }
    )
    while session.listen_port() == 0:
        time.sleep(0.02)
    sessions.append(session)
    ports.append(session.listen_port())
started = time.time()
while time.time() - started < 30:
    alone = [index for index, session in enumerate(sessions) if session.status().dht_nodes == 0]
    if not alone:
        break
    # What is told before its table runs is lost.
    for index in alone:
        for other in range(count):
            if other != index:
                sessions[index].add_dht_node((host, ports[other]))
    time.sleep(0.2)
print("ready", *ports, flush=True)
sys.stdin.read()
