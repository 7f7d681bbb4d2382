"""A libtorrent peer on loopback.

python3 torrent_peer.py seed|leech TORRENT_OR_MAGNET FOLDER [--peer PORT] [--web URL] [--tracker URL] [--seconds N]
    [--encrypted rc4|clear|any] [--dht PORT]

--tracker takes the place of the trackers that the source names; empty: none is asked.
Prints `listening PORT` when it is up, and for a leecher `done SECONDS HOW` when it has everything; HOW is `rc4` or `clear` after
an encrypted handshake, else `plain`. With --encrypted it speaks no other way. With --dht it asks the table,
beginning with the node at that port.
"""
import argparse
import sys
import time

import libtorrent as lt

said = argparse.ArgumentParser()
said.add_argument("mode", choices=["seed", "leech"])
said.add_argument("source")
said.add_argument("folder")
said.add_argument("--peer", type=int, default=0)
said.add_argument("--web")
said.add_argument("--tracker")
said.add_argument("--encrypted", choices=["rc4", "clear", "any"])
said.add_argument("--dht", type=int)
said.add_argument("--seconds", type=float, default=60)
args = said.parse_args()

session = lt.session(
    {
        "listen_interfaces": "127.0.0.1:0",
        "enable_dht": bool(args.dht),
        "dht_bootstrap_nodes": "127.0.0.1:%d" % (args.dht or 0),
        "dht_restrict_routing_ips": False,
        "dht_restrict_search_ips": False,
        "dht_ignore_dark_internet": False,
        "enable_lsd": False,
        "enable_upnp": False,
        "enable_natpmp": False,
        "allow_multiple_connections_per_ip": True,
        "out_enc_policy": 0 if args.encrypted else 2,
        "in_enc_policy": 0 if args.encrypted else 2,
        "allowed_enc_level": {"clear": 1, "rc4": 2}.get(args.encrypted, 3),
        "enable_outgoing_utp": False,
        "enable_incoming_utp": False,
        "ssrf_mitigation": False,
        "send_buffer_watermark": 4 << 20,
        "alert_mask": lt.alert.category_t.error_notification,
    }
)
if args.source.startswith("magnet:"):
    params = lt.parse_magnet_uri(args.source)
else:
    params = lt.add_torrent_params()
    params.ti = lt.torrent_info(args.source)
params.save_path = args.folder
params.flags &= ~lt.torrent_flags.auto_managed
params.flags &= ~lt.torrent_flags.paused
if args.mode == "seed":
    params.flags |= lt.torrent_flags.seed_mode
handle = session.add_torrent(params)
if args.tracker is not None:
    handle.replace_trackers([lt.announce_entry(args.tracker)] if args.tracker else [])
if args.web:
    handle.add_url_seed(args.web)
while session.listen_port() == 0:
    time.sleep(0.02)
print("listening", session.listen_port(), flush=True)
started = time.time()
how = "none"
asked = 0.0
while time.time() - started < args.seconds:
    status = handle.status()
    if args.peer and status.num_peers == 0 and time.time() > asked:
        handle.connect_peer(("127.0.0.1", args.peer))
        asked = time.time() + 1
    if args.dht and status.num_peers == 0 and time.time() > asked:
        # By itself only after minutes, where the torrent was there before the table.
        handle.force_dht_announce()
        asked = time.time() + 1
    for peer in handle.get_peer_info():
        if not peer.flags & (peer.handshake | peer.connecting):
            rc4, clear = peer.flags & peer.rc4_encrypted, peer.flags & peer.plaintext_encrypted
            how = "rc4" if rc4 else "clear" if clear else "plain"
    if args.mode == "leech" and status.is_seeding:
        print("done %.3f %s" % (time.time() - started, how), flush=True)
        sys.exit(0)
    time.sleep(0.02)
print("late", handle.status().progress, [str(alert) for alert in session.pop_alerts()], flush=True)
sys.exit(0 if args.mode == "seed" else 1)
